//! What the gateway of a phase is told.

use std::time::Duration;

use super::super::bed::TestBed;
use super::loads::{Hog, Victim};

/// The promise where there is none yet. It is easy to keep, and there because only volumes with an SLO have
/// windows.
const EASY_SLO_US: u64 = 10_000_000;

pub(super) const VICTIM_IMAGE: &str = "victim.img";
pub(super) const HOG_IMAGE: &str = "hog.img";

/// A phase to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) device: Device,
    pub(super) control: Control,
    /// The victim's promise, if it has one.
    pub(super) slo_us: Option<u64>,
    pub(super) victim: &'static Victim,
    pub(super) hog: Option<&'static Hog>,
    /// How long it is judged.
    pub(super) seconds: u32,
    /// The length of a window.
    pub(super) window: Duration,
}

/// The device that victim and hog share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    /// The disk, with a file for each.
    File,
    /// A station: 8 servers of 5 ms.
    Station,
}

/// What holds the hog back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    None,
    Facade,
    Promise,
    /// Nothing that looks at latencies: only what [`Limit`] says of the hog.
    Static(Limit),
}

/// A static setting of the hog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// No limit.
    Free,
    /// This many requests at the device.
    Depth(u32),
    /// This many requests a second.
    Iops(u32),
}

/// What the victim is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Promised {
    /// An SLO that any device keeps.
    Easy,
    /// A mean latency in microseconds, up to the victim's rate.
    Slo(u64),
    /// A target that any device keeps, and that `weir set` can change.
    EasyTarget,
}

impl Limit {
    /// The key and the value in a configuration, if there is a limit.
    pub(super) fn assignment(self) -> Option<(&'static str, String)> {
        match self {
            Self::Free => None,
            Self::Depth(depth) => Some(("max_concurrency", depth.to_string())),
            Self::Iops(iops) => Some(("max_iops", format!("\"{iops}iops\""))),
        }
    }
}

impl Control {
    /// The lines of the pool, without the window. A pool with `none` refuses limits. One with `pid` takes
    /// them, measures an SLO without enforcing it, and does nothing below its threshold.
    const fn lines(self) -> &'static str {
        match self {
            Self::None => "control = \"none\"",
            Self::Facade => "control = \"facade\"",
            Self::Promise => "control = \"promise\"",
            Self::Static(_) => "control = \"pid\"\nthreshold = \"10s\"",
        }
    }
}

/// The pool and the volumes of a phase.
///
/// # Errors
/// If there is no room for the files.
pub(super) fn configuration(bed: &TestBed, setting: Setting, promised: Promised) -> anyhow::Result<String> {
    let [victim, hog] = match setting.device {
        Device::File => {
            let backend =
                |name: &str| anyhow::Ok(format!("backend = \"file:{}\"", bed.image(name)?.display()));
            [backend(VICTIM_IMAGE)?, backend(HOG_IMAGE)?]
        }
        Device::Station => [const { "backend = \"station:disk\"\nsize = \"256MiB\"" }; 2].map(str::to_owned),
    };
    Ok(configuration_with(setting, promised, &victim, &hog))
}

fn configuration_with(setting: Setting, promised: Promised, victim: &str, hog: &str) -> String {
    let up_to = setting.victim.up_to_iops;
    let slo = |us| format!("slo = [{{ up_to = \"{up_to}iops\", read = \"{us}us\", write = \"{us}us\" }}]");
    let promise = match promised {
        Promised::Easy => slo(EASY_SLO_US),
        Promised::Slo(us) => slo(us),
        Promised::EasyTarget => format!("target = {{ latency = \"{EASY_SLO_US}us\" }}"),
    };
    let station = match setting.device {
        Device::File => "",
        Device::Station => "\n[station.disk]\nservers = 8\nservice_time = \"5ms\"\n",
    };
    let limit = match setting.control {
        Control::Static(limit) => limit.assignment(),
        _ => None,
    };
    let limit = limit.map_or_else(String::new, |(key, value)| format!("{key} = {value}\n"));
    format!(
        "[pool.p]\n{}\nslo_window = \"{}ms\"\n\n\
         [volume.victim]\npool = \"p\"\n{victim}\n{promise}\n\n\
         [volume.hog]\npool = \"p\"\n{hog}\n{limit}{station}",
        setting.control.lines(),
        setting.window.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::super::loads::READS;
    use super::*;

    const SETTING: Setting = Setting {
        device: Device::Station,
        control: Control::Facade,
        slo_us: None,
        victim: &READS,
        hog: None,
        seconds: 1,
        window: Duration::from_millis(200),
    };

    #[test]
    fn the_slo_reaches_to_the_rate_of_the_victim() {
        let text = configuration_with(SETTING, Promised::Slo(12_000), "backend = \"v\"", "backend = \"h\"");
        assert!(
            text.contains("slo = [{ up_to = \"1000iops\", read = \"12000us\", write = \"12000us\" }]"),
            "{text}"
        );
        assert!(text.contains("control = \"facade\"\nslo_window = \"200ms\""), "{text}");
        assert!(text.contains("servers = 8"), "{text}");
        let file = configuration_with(Setting { device: Device::File, ..SETTING }, Promised::Easy, "", "");
        assert!(!file.contains("station"), "{file}");
    }

    #[test]
    fn a_static_setting_limits_the_hog_and_nobody_else() {
        let of = |limit| {
            let setting = Setting { control: Control::Static(limit), device: Device::File, ..SETTING };
            configuration_with(setting, Promised::EasyTarget, "", "")
        };
        assert!(of(Limit::Depth(8)).ends_with("[volume.hog]\npool = \"p\"\n\nmax_concurrency = 8\n"));
        assert!(of(Limit::Iops(900)).contains("max_iops = \"900iops\""));
        assert!(!of(Limit::Free).contains("max_"));
        assert!(of(Limit::Free).contains("target = { latency = "));
    }
}
