//! Puts promised volumes in order: how many of their requests may be at the device, and when these are due.
//!
//! Promised volumes go before all others, so all of their requests are at the device at once. A device does
//! not know which of them is urgent. Example: a volume has 200 requests there that are promised 4 s, and
//! another has ten that are promised 50 ms. If the device takes 1 s for all, the ten are late. So the
//! requests wait in weir instead, and the most urgent goes first. That begins when promises are
//! missed (`trial`), less urgent requests are in the way, and no background volume is left to be held back.
//!
//! | what is seen | what the bound does |
//! |---|---|
//! | a promise is about to be missed: its requests wait at the device for less urgent ones | is cut |
//! | one window in some hundred would be missed in this way | is taken back slowly |
//! | another promise comes into danger, and its requests wait in weir | is raised fast |
//! | all are kept | is raised slowly |
//! | nobody has reached it for 5 s | goes |
//!
//! A raise helps those that wait in weir: a device that may choose among more requests does more.
//!
//! **Why one bound, and an order.** A bound for each volume was tried. Two volumes whose loads come and go
//! were in danger in turn, and each held the other one back: both got less than without a law. In an order,
//! a volume is let go by itself: a request that has waited for long is the most urgent one.
//!
//! **Lateness does not spread.** If a volume asks for more than the device can do, its requests are late
//! without end, and would all go first. So while requests that wait are late, all are due later: by
//! `stretch / priority` of their time. Example: a stretch of 4 makes 50 ms into 250 ms at priority 1, and
//! into 100 ms at priority 4.
//!
//! **An order that does not help** ends, and the law tries it again later (`trial`).
//!
//! **A promise that nothing can keep** does not break one that can be kept. It brings another one of its
//! priority only to where that one comes into danger; one of priority 4 brings it four times as far (`line`).
//!
//! **A silence.** One volume alone may have as many requests at the device as did not spoil the next burst of
//! the others before (`between`), and any number after ten seconds.

use weir_model::Priority;

use super::PERIOD;
use super::between::Between;
use super::line::{Line, Lines, Urgencies};
use super::steps::{self, SETTLES, UNFELT};
use super::strain::{AIM, Strain};

/// How fast the bound grows while requests that wait in weir come into danger, a second.
const FAST: f64 = 2.0;
/// Periods after a silence that tell what it should have been: a second.
const RETURN: u32 = 20;
/// Periods after which a volume that is alone has no bound: ten seconds.
const ALONE: u32 = 200;
/// If the first second after a silence has a strain above this, the silence had too much at the device. An
/// order keeps a promise near its limit, so a first second a little above the limit tells nothing of the
/// silence. A strain of 1 was tried. On an array with NVRAM, a volume that was alone then had 51 requests
/// at a time, and its backlog was not gone when the burst came.
const SPOILT: f64 = 1.3;
/// If the strain of that second is below this, the silence had room for more.
const EASY: f64 = 1.2;
/// How much of the stretch is left after a second in which nobody is late.
const KEEPS: f64 = 0.9;
/// The most that promises are stretched, for a priority of one.
const MOST: f64 = 100.0;

/// The order of promised volumes.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Order {
    /// `None`: no bound.
    bound: Option<f64>,
    /// Periods since the last cut, and since somebody reached the bound.
    settled: f64,
    unfelt: f64,
    /// By how much promises are stretched.
    stretch: f64,
    /// The volume that was the only one with a request of late, and for how many periods.
    alone: Option<(u64, u32)>,
    /// Periods since there is none.
    returned: Option<u32>,
    between: Between,
    urgencies: Urgencies,
}

impl Order {
    /// How many requests may be at the device, if `room` is free; `None`: any number.
    pub(super) fn bound(&self, room: f64) -> Option<f64> {
        let bound = self.bound?;
        match self.alone {
            None => Some(bound),
            Some((_, periods)) => (periods < ALONE).then(|| self.between.most(bound, room)),
        }
    }

    /// Whether there is a bound, also while a volume that is alone does not feel it.
    pub(super) const fn is_there(&self) -> bool {
        self.bound.is_some()
    }

    /// When a request of a volume of this priority is due that would be due after this time.
    pub(super) fn due(&self, due: f64, priority: Priority) -> f64 {
        due * (1.0 + self.stretch / priority.get())
    }

    /// A promised volume has a request.
    pub(super) fn on_request(&mut self, serial: u64) {
        if self.alone.take_if(|(alone, _)| *alone != serial).is_some() {
            self.returned = Some(0);
        }
    }

    /// Ends a period. `last_second`: the worst strain of the last second. `is_last_resort`: no background
    /// volume could be held back further, so an order may begin. True: there was a cut, so what was seen
    /// before tells nothing of what comes.
    pub(super) fn step(&mut self, is_last_resort: bool, lines: &[Line], last_second: f64, room: f64) -> bool {
        self.learn(lines, last_second, room);
        let before = self.alone.map_or(0, |(_, periods)| periods);
        self.alone = if let [line] = lines { Some((line.serial, before.saturating_add(1))) } else { None };
        self.settled += 1.0;
        let seen = self.urgencies.weigh(lines);
        self.bound = match self.bound {
            None => is_last_resort.then(|| self.first(seen)).flatten(),
            // Alone, or silent: nothing tells what the bound should be.
            Some(bound) if lines.len() < 2 => Some(bound),
            Some(bound) => self.moved(bound, seen),
        };
        self.stretch(seen.waiting);
        self.bound.is_some() && self.settled == 0.0
    }

    /// Lets all requests go to the device again.
    pub(super) fn let_go(&mut self) {
        (self.bound, self.stretch) = (None, 0.0);
    }

    /// Learns from the first second after a silence what might have been at the device in it.
    fn learn(&mut self, lines: &[Line], last_second: f64, room: f64) {
        let Some(periods) = &mut self.returned else { return };
        *periods += 1;
        if *periods >= RETURN || lines.len() < 2 {
            self.returned = None;
            self.between.on_return(last_second, EASY, SPOILT, self.bound.unwrap_or(room), room);
        }
    }

    /// The first bound, if a promise is about to be missed because of less urgent requests.
    fn first(&mut self, seen: Lines) -> Option<f64> {
        seen.hindered.filter(|strain| strain.is_hard()).map(|hard| {
            self.unfelt = 0.0;
            self.cut(seen.at_device, hard)
        })
    }

    /// A bound that was too much, cut.
    fn cut(&mut self, bound: f64, hard: Strain) -> f64 {
        self.settled = 0.0;
        (bound * steps::cut(hard)).max(1.0)
    }

    /// The next bound.
    fn moved(&mut self, bound: f64, seen: Lines) -> Option<f64> {
        let seconds = PERIOD.as_secs_f64();
        let is_felt = seen.in_weir > 0.0 || seen.at_device >= bound.floor();
        self.unfelt = if is_felt { 0.0 } else { self.unfelt + 1.0 };
        let hindered = seen.hindered.map_or(0.0, |strain| strain.likely.max(strain.window));
        let hard = seen.hindered.filter(|strain| strain.is_hard());
        let may_cut = seen.hindered_counts > seen.waiting_counts;
        if let Some(hard) = hard.filter(|_| may_cut) {
            if self.settled < SETTLES || seen.at_device > bound.floor() {
                return Some(bound);
            }
            // The closer those that wait are to their own limits, the less is cut.
            let next = self.cut(bound, hard);
            return Some(next.max(bound * seen.waiting_counts / seen.hindered_counts));
        }
        if !is_felt {
            return (self.unfelt * seconds <= UNFELT).then_some(bound);
        }
        let growth = if seen.need > 0.0 && (hard.is_none() || !may_cut) {
            FAST * seen.need
        } else if hindered > 1.0 && may_cut {
            -steps::back(hindered)
        } else {
            let room = (AIM / hindered.max(1e-3)).log2().clamp(0.0, 1.0);
            steps::slow(room, self.settled)
        };
        Some((bound * (1.0 + growth * seconds)).max(1.0))
    }

    /// Stretches promises while requests that wait in weir are late.
    fn stretch(&mut self, waiting: f64) {
        let seconds = PERIOD.as_secs_f64();
        if self.bound.is_some() && waiting > 1.0 {
            self.stretch = (self.stretch + (waiting - 1.0) * seconds).min(MOST);
        } else {
            self.stretch *= KEEPS.powf(seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::tests::line;
    use super::*;

    /// The bound, in a room of 100 requests, after so many periods with these volumes.
    fn after(order: &mut Order, periods: u32, lines: &[Line]) -> Option<f64> {
        for _ in 0..periods {
            order.step(true, lines, 0.0, 100.0);
        }
        order.bound(100.0)
    }

    fn waits(line: Line) -> Line {
        Line { part_at_device: 0.1, waiting: 50.0, ..line }
    }

    /// A tight promise that is missed because of 100 requests that have time.
    fn hindered() -> [Line; 2] {
        [line(1, 50.0, 2.0, 10.0), line(2, 4_000.0, 0.1, 100.0)]
    }

    #[test]
    fn a_promise_that_less_urgent_requests_hinder_puts_all_in_order() {
        assert_eq!(after(&mut Order::default(), 1, &hindered()), Some(55.0));
        let mut kept = Order::default();
        kept.step(false, &hindered(), 0.0, 100.0);
        assert_eq!(kept.bound(100.0), None, "background volumes could still be held back");
    }

    #[test]
    fn only_a_period_with_a_cut_is_said_to_have_one() {
        let mut order = Order::default();
        let cuts = [0, 1, 2].map(|_| order.step(true, &hindered(), 0.0, 100.0));
        assert_eq!(cuts, [true, false, false]);
    }

    #[test]
    fn a_volume_that_is_alone_is_not_put_in_order() {
        assert_eq!(after(&mut Order::default(), 100, &hindered()[..1]), None);
    }

    #[test]
    fn the_bound_is_not_cut_again_before_the_device_has_come_down_to_it() {
        let mut order = Order::default();
        let first = after(&mut order, 1, &hindered());
        assert_eq!(after(&mut order, 20, &hindered()), first, "110 are there");
        let fewer = [line(1, 50.0, 2.0, 5.0), line(2, 4_000.0, 0.1, 50.0)];
        assert_eq!(after(&mut order, 1, &fewer), Some(55.0 * 0.5));
    }

    #[test]
    fn a_volume_that_waits_and_comes_into_danger_gets_more() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        let lines = [line(1, 50.0, 0.8, 5.0), waits(line(2, 4_000.0, 0.9, 5.0))];
        assert!(after(&mut order, 20, &lines).unwrap() > 30.0);
    }

    #[test]
    fn a_promise_that_nothing_can_keep_does_not_break_one_that_can_be_kept_unless_it_counts_more() {
        let after = |waiting, priority| {
            let mut order = Order { bound: Some(10.0), ..Order::default() };
            let tight = Line { priority: Priority::new(priority).unwrap(), ..line(1, 50.0, 9.0, 5.0) };
            after(&mut order, 20, &[tight, waits(line(2, 4_000.0, waiting, 5.0))]).unwrap()
        };
        assert!(after(0.2, 1.0) < 6.0, "it has time: {}", after(0.2, 1.0));
        assert!(after(0.7, 1.0) > 11.0, "it comes into danger: {}", after(0.7, 1.0));
        assert!(after(2.0, 4.0) < 9.0, "4 times as much: {}", after(2.0, 4.0));
    }

    #[test]
    fn while_requests_that_wait_are_late_promises_are_stretched_by_priority() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        after(&mut order, 20, &[line(1, 50.0, 0.8, 5.0), waits(line(2, 4_000.0, 5.0, 5.0))]);
        let due = |priority| order.due(0.05, Priority::new(priority).unwrap());
        assert!((due(1.0) - 0.25).abs() < 1e-6, "4 more: {}", due(1.0));
        assert!((due(4.0) - 0.10).abs() < 1e-6, "{}", due(4.0));
        after(&mut order, 2_000, &[line(1, 50.0, 0.8, 5.0)]);
        assert!(order.due(0.05, Priority::ONE) < 0.051);
    }

    #[test]
    fn a_volume_that_is_alone_has_the_room_and_then_no_bound_until_another_one_comes() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        assert_eq!(after(&mut order, 1, &hindered()[1..]), Some(100.0));
        order.on_request(2);
        assert_eq!(order.bound(100.0), Some(100.0), "its own request");
        assert_eq!(after(&mut order, ALONE, &hindered()[1..]), None, "for ten seconds");
        order.on_request(1);
        assert_eq!(order.bound(100.0), Some(10.0));
    }

    #[test]
    fn a_burst_that_begins_badly_has_less_before_it_the_next_time() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        after(&mut order, 1, &hindered()[1..]);
        order.on_request(1);
        let back = [line(1, 50.0, 0.9, 5.0), line(2, 4_000.0, 0.1, 5.0)];
        for _ in 0..RETURN {
            order.step(true, &back, 3.0, 100.0);
        }
        let bound = order.bound(100.0).unwrap();
        let alone = after(&mut order, 1, &hindered()[1..]).unwrap();
        assert!((alone - (100.0 * bound).sqrt()).abs() < 0.1, "{alone}");
    }

    #[test]
    fn a_burst_that_begins_a_little_above_its_limit_has_no_less_before_it_the_next_time() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        let before = after(&mut order, 1, &hindered()[1..]).unwrap();
        order.on_request(1);
        let back = [line(1, 50.0, 0.9, 5.0), line(2, 4_000.0, 0.1, 5.0)];
        for _ in 0..RETURN {
            order.step(true, &back, 1.25, 100.0);
        }
        assert!((after(&mut order, 1, &hindered()[1..]).unwrap() - before).abs() < 1e-9);
    }

    #[test]
    fn a_bound_that_nobody_reaches_goes() {
        let mut order = Order { bound: Some(10.0), ..Order::default() };
        let calm = [line(1, 50.0, 0.5, 2.0), line(2, 4_000.0, 0.1, 2.0)];
        assert!(after(&mut order, 90, &calm).is_some());
        assert_eq!(after(&mut order, 20, &calm), None);
    }
}
