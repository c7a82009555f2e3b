//! Each step fails once, and nothing half-done is left; what the kernel lacks is named.

use std::collections::BTreeSet;
use std::process::Command as Program;

use weir_agent::actuator::{Actuator, ActuatorError, Answer, Refusal, Request, Sockets, Wire};
use weir_model::Span;
use weir_throttle::{Command, Connection, LeafId};

use rustix::io::Errno;

use super::in_guest;
use super::scene::{LEAF, LINK, PROGRAM, Scene, add_leaf, apply, enter, link, set_delay, shell};

const DELAY: Span = Span::from_millis(10);
/// Looks at the queues, makes the table, looks for what a dead agent left, adds a root.
const REQUESTS_TO_INSTALL: usize = 4;
/// Adds the class and its queue.
const REQUESTS_OF_A_LEAF: usize = 2;

/// A way to the kernel that fails once.
struct FailsOnce {
    kernel: Sockets,
    /// How many more requests reach the kernel before one fails.
    before: usize,
}

impl Wire for FailsOnce {
    fn ask(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let fails = self.before == 0;
        self.before = self.before.wrapping_sub(1);
        if fails {
            let (what, said) = (format!("{request:?}"), "on purpose".to_owned());
            return Err(Refusal { what, errno: Errno::IO, said, needs: None });
        }
        self.kernel.ask(request)
    }
}

/// An agent whose request after `before` others fails.
fn failing(scene: &Scene, before: usize) -> Actuator {
    scene.in_target(|| {
        let kernel = Sockets::open().expect("the kernel has netlink");
        Actuator::over(Box::new(FailsOnce { kernel, before })).expect("the kernel has sockets")
    })
}

fn is_on_purpose(error: &ActuatorError) -> bool {
    matches!(error, ActuatorError::Refused(refusal) if refusal.said == "on purpose")
}

#[test]
fn each_step_of_the_installation_may_fail_and_leaves_nothing() {
    in_guest("each_step_of_the_installation_may_fail_and_leaves_nothing", || {
        let scene = Scene::new();
        scene.shell("ip link add other0 type ifb; ip link set other0 up");
        let before = scene.state();
        let both = [LINK, "other0"].map(str::to_owned).into();
        let mut steps = 0;
        loop {
            let mut actuator = failing(&scene, steps);
            match actuator.install(&both, DELAY) {
                Ok(_) => break,
                Err(error) => assert!(is_on_purpose(&error), "step {steps}: {error}"),
            }
            assert_eq!(scene.state(), before, "step {steps}");
            assert!(!actuator.has_left(), "step {steps}");
            steps += 1;
        }
        assert_eq!(steps, REQUESTS_TO_INSTALL + 1, "two roots");
    });
}

#[test]
fn each_command_may_fail_and_changes_nothing_then() {
    in_guest("each_command_may_fail_and_changes_nothing_then", || {
        let scene = Scene::new();
        let connection: Connection = scene.session(super::scene::TARGET_V4).connection;
        let other = LeafId(2);
        let commands = [
            add_leaf(other, DELAY),
            set_delay(Span::ZERO),
            enter(LEAF, connection),
            Command::Classify(true),
            Command::RemoveLeaf { interface: LINK.to_owned(), leaf: LEAF },
        ];
        for command in &commands {
            let mut steps = 0;
            let mut fails = true;
            while fails {
                let mut actuator = failing(&scene, REQUESTS_TO_INSTALL + REQUESTS_OF_A_LEAF + steps);
                actuator.install(&link(), DELAY).expect("not yet");
                apply(&mut actuator, &[add_leaf(LEAF, DELAY)]);
                let before = scene.uncounted_state();
                let applied = actuator.apply(std::slice::from_ref(command));
                fails = applied.is_err();
                if let Err(error) = applied {
                    assert!(is_on_purpose(&error), "{command:?}: {error}");
                    assert_eq!(scene.uncounted_state(), before, "{command:?}, step {steps}");
                    steps += 1;
                }
                drop(actuator);
                scene.actuator().remove().expect("no agent is at work");
            }
            assert!(steps > 0, "{command:?}");
        }
    });
}

#[test]
fn each_step_of_the_removal_may_fail_and_the_next_removal_finishes_it() {
    in_guest("each_step_of_the_removal_may_fail_and_the_next_removal_finishes_it", || {
        let scene = Scene::new();
        let before = scene.state();
        let mut steps = 0;
        loop {
            let mut actuator = failing(&scene, REQUESTS_TO_INSTALL + REQUESTS_OF_A_LEAF + 1 + steps);
            actuator.install(&link(), DELAY).expect("not yet");
            apply(&mut actuator, &[add_leaf(LEAF, DELAY), Command::Classify(true)]);
            let failed = actuator.remove().is_err();
            if failed {
                actuator.remove().expect("only one step fails");
            }
            assert_eq!(scene.state(), before, "step {steps}");
            drop(actuator);
            // A look that fails while it waits for leaves is no failure.
            if steps > 5 {
                break;
            }
            steps += 1;
        }
    });
}

/// While it is there, the kernel finds no module.
struct NoModules(String);

impl NoModules {
    fn new() -> Self {
        let loader = shell("cat /proc/sys/kernel/modprobe; echo /bin/false >/proc/sys/kernel/modprobe");
        Self(loader)
    }
}

impl Drop for NoModules {
    fn drop(&mut self) {
        shell(&format!("echo {} >/proc/sys/kernel/modprobe", self.0.trim()));
    }
}

#[test]
fn a_module_that_is_missing_is_named_and_nothing_is_left() {
    in_guest("a_module_that_is_missing_is_named_and_nothing_is_left", || {
        let scene = Scene::new();
        let mut actuator = scene.actuator();
        actuator.install(&link(), DELAY).expect("HTB is there");
        let before = scene.uncounted_state();
        shell("modprobe -r sch_netem");
        let error = {
            let _none = NoModules::new();
            actuator.apply(&[add_leaf(LEAF, DELAY)]).expect_err("there is no netem")
        };
        assert!(matches!(error, ActuatorError::Missing { module: "sch_netem", .. }), "{error}");
        assert!(error.to_string().contains("modprobe sch_netem"), "{error}");
        assert_eq!(scene.uncounted_state(), before, "its class is removed again");
        apply(&mut actuator, &[add_leaf(LEAF, DELAY)]);
    });
}

#[test]
fn an_agent_without_a_module_does_not_start_and_changes_nothing() {
    in_guest("an_agent_without_a_module_does_not_start_and_changes_nothing", || {
        for module in ["sch_netem", "sch_htb", "nf_tables"] {
            let scene = Scene::new();
            let before = scene.state();
            let mut actuator = scene.actuator();
            shell(&format!("modprobe -r {module}"));
            {
                let _none = NoModules::new();
                // Also where no interface is known yet, as nobody is logged in.
                for interfaces in [link(), BTreeSet::new()] {
                    let refusals = actuator.refusals(&interfaces);
                    let [ActuatorError::Missing { module: missing, .. }] = &*refusals else {
                        panic!("{refusals:?}")
                    };
                    assert_eq!(*missing, module);
                    assert!(refusals[0].to_string().contains(&format!("modprobe {module}")), "{refusals:?}");
                }
                let refused = scene.in_target(|| Program::new(PROGRAM).arg("start").output());
                let refused = refused.expect("cargo has built it");
                let said = String::from_utf8_lossy(&refused.stderr);
                assert_eq!(refused.status.code(), Some(1), "{said}");
                assert!(said.contains(&format!("module: \"{module}\"")), "{said}");
            }
            shell(&format!("modprobe {module}"));
            assert_eq!(scene.state(), before, "{module}");
            actuator.install(&link(), DELAY).expect("all is there");
        }
    });
}
