//! The law of promises in one of several gateways: what an engine says to the others, and what it does when
//! it hears of them.

use weir_engine::{
    BackgroundKnobs, Control, Dispatch, Engine, EngineConfig, Event, Request, Standing, Strain, VolumeConfig,
};
use weir_model::{Instant, IoKind, Objective, Span, Target, VolumeId};

const MS: Span = Span::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + MS.saturating_mul(millis)
}

/// An engine with one volume, promised something or not.
fn engine(target: Option<Target>) -> (Engine, VolumeId) {
    let config = EngineConfig { control: Control::SharedPromise, ..EngineConfig::default() };
    let mut engine = Engine::new(at(0), config);
    let objective = Objective { target, ..Objective::default() };
    let volume = engine.add_volume(at(0), VolumeConfig { objective, ..VolumeConfig::default() });
    (engine, volume)
}

fn submit(engine: &mut Engine, now: Instant, volume: VolumeId) {
    engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
}

/// Lets all periods pass until then. Nothing is answered.
fn pass(engine: &mut Engine, until: Instant) {
    while let Some(due) = engine.poll_timeout().filter(|due| *due <= until) {
        engine.handle_timeout(due);
        while let Dispatch::Issue(_) = engine.poll_dispatch(due) {}
    }
}

fn events(engine: &mut Engine) -> Vec<Event> {
    std::iter::from_fn(|| engine.poll_event()).collect()
}

fn said(engine: &mut Engine) -> Vec<Standing> {
    let standing = |event| if let Event::Stands(standing) = event { Some(standing) } else { None };
    events(engine).into_iter().filter_map(standing).collect()
}

#[test]
fn an_engine_says_how_its_promises_stand_each_period_while_they_have_requests() {
    let (mut engine, volume) = engine(Some(Target::Latency(MS.saturating_mul(10))));
    submit(&mut engine, at(1), volume);
    pass(&mut engine, at(500));
    let said = said(&mut engine);
    assert_eq!(said.len(), 10);
    let strain = said[9].strain.expect("its request hangs");
    assert!(strain.window >= 10.0, "{strain:?}");
    assert!(said[9].is_promised && said[9].is_there && said[9].backgrounds == 0);
}

#[test]
fn an_engine_whose_volumes_are_promised_nothing_says_so_twice_a_second_and_that_they_ask() {
    let (mut engine, volume) = engine(None);
    pass(&mut engine, at(2_000));
    assert!((4..=6).contains(&said(&mut engine).len()));
    submit(&mut engine, at(2_001), volume);
    pass(&mut engine, at(2_050));
    assert!(said(&mut engine).last().is_some_and(|standing| standing.backgrounds == 1));
}

#[test]
fn a_cut_for_a_promise_behind_another_gateway_is_in_force_before_the_next_request_goes() {
    let (mut engine, volume) = engine(None);
    (0..60).for_each(|_| submit(&mut engine, at(1), volume));
    let mut issued = 0;
    while let Dispatch::Issue(_) = engine.poll_dispatch(at(1)) {
        issued += 1;
    }
    assert_eq!(issued, 60);
    let strain = Strain { window: 3.0, lately: 3.0, likely: 3.0, latency: 0.03, service: 0.004 };
    let standing =
        Standing { is_promised: true, is_there: true, strain: Some(strain), ..Standing::default() };
    engine.handle_standing(at(10), standing);
    let allowed = engine.snapshot().allowance.map(|knobs| knobs.most);
    assert_eq!(allowed, Some(30));
    let is_allowed = |event: &Event| matches!(event, Event::Allowed(BackgroundKnobs { most: 30, .. }));
    assert!(events(&mut engine).iter().any(is_allowed));
    submit(&mut engine, at(10), volume);
    assert!(matches!(engine.poll_dispatch(at(10)), Dispatch::AtDepth { .. }));
}

#[test]
fn an_engine_that_has_heard_nothing_bounds_its_background_until_it_hears_that_nobody_is_promised_anything() {
    let (mut engine, _) = engine(None);
    pass(&mut engine, at(50));
    assert_eq!(engine.snapshot().allowance.map(|knobs| knobs.most), Some(1), "one request");
    engine.handle_standing(at(60), Standing::default());
    assert_eq!(engine.snapshot().allowance.map(|knobs| knobs.most), Some(u32::MAX));
}
