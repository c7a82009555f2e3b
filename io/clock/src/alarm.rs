//! One alarm that a task can wait for, exact to the nanosecond.
//!
//! The alarm is a `timerfd`, polled like any socket. tokio's timers have a granularity of a millisecond,
//! several times the service time of a flash device. If a rate gate opens a millisecond late, the rate is not
//! kept.
//!
//! A request path moves its alarm with almost every request, nearly always to a later instant. A system call
//! for each move would be noticeable. So if the alarm moves later, the kernel's timer stays as it is. When
//! that timer goes off early, it is armed again for the wanted instant, and no task is woken.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_model::Instant;

use crate::Clock;

/// A one-shot alarm. Only one task may poll it at a time: of several, only the last is woken.
#[derive(Debug)]
pub struct Alarm {
    clock: Clock,
    timer: AsyncFd<OwnedFd>,
    /// The instant at which the owner wants to be woken.
    wanted: Option<Instant>,
    /// The instant at which the kernel's timer goes off; never later than `wanted`.
    armed: Option<Instant>,
}

impl Alarm {
    /// An alarm in the time of `clock`, not set. Like the clock, it counts the time that the machine sleeps:
    /// an alarm that became due meanwhile fires when the machine wakes up.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        // Its successor is `unsafe`, for descriptors that may be closed elsewhere; an `OwnedFd` cannot be.
        #[allow(deprecated)]
        let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
        Ok(Self { clock, timer, wanted: None, armed: None })
    }

    /// Sets the alarm to `at`, in place of its former instant. An instant that has passed fires at once.
    /// `None` turns the alarm off. This enters the kernel only if `at` is before the instant that the
    /// kernel's timer is armed for.
    pub fn set(&mut self, at: Option<Instant>) {
        self.wanted = at.filter(|at| *at != Instant::FAR_FUTURE);
        if let Some(wanted) = self.wanted
            && self.armed.is_none_or(|armed| wanted < armed)
        {
            self.arm(wanted);
        }
    }

    /// Ready once the alarm has gone off, never before its instant. Then the alarm is off until it is set
    /// again. Otherwise the task is woken when the alarm goes off, whether it was set before or after this
    /// call.
    pub fn poll_fired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // The timer's count is never read. Arming the timer again sets the count to zero, and the edge
            // wakes the task.
            ready!(self.timer.poll_read_ready(cx)).expect("the runtime is gone").clear_ready();
            self.armed = None;
            match self.wanted {
                Some(wanted) if wanted <= self.clock.now() => {
                    self.wanted = None;
                    return Poll::Ready(());
                }
                Some(wanted) => self.arm(wanted),
                None => {}
            }
        }
    }

    /// Arms the kernel's timer. The time until then is relative, because the clock's origin is not the
    /// kernel's. The kernel adds it to a later reading than this one, so the timer is never early.
    fn arm(&mut self, at: Instant) {
        let nanos = at.saturating_since(self.clock.now()).as_nanos().max(1); // zero would turn the timer off
        let second = 1_000_000_000;
        let it_value = Timespec {
            tv_sec: i64::try_from(nanos / second).expect("2^64 ns are 585 years"),
            tv_nsec: i64::try_from(nanos % second).expect("below a second"),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)
            .expect("the descriptor is a timer and the time is normal");
        self.armed = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use weir_model::Span;

    use super::*;

    #[tokio::test]
    async fn an_alarm_never_fires_before_its_instant() {
        let clock = Clock::new();
        let mut alarm = Alarm::new(clock).unwrap();
        for micros in [1, 50, 700, 3_000] {
            let at = clock.now() + Span::from_micros(micros);
            alarm.set(Some(at));
            poll_fn(|cx| alarm.poll_fired(cx)).await;
            assert!(clock.now() >= at);
        }
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_fires_at_once() {
        let mut alarm = Alarm::new(Clock::new()).unwrap();
        alarm.set(Some(Instant::ORIGIN));
        poll_fn(|cx| alarm.poll_fired(cx)).await;
    }

    #[tokio::test]
    async fn an_alarm_can_be_moved_both_ways() {
        let clock = Clock::new();
        let mut alarm = Alarm::new(clock).unwrap();
        alarm.set(Some(clock.now() + Span::from_secs(1_000)));
        let sooner = clock.now() + Span::from_micros(500);
        alarm.set(Some(sooner));
        let later = sooner + Span::from_millis(2);
        alarm.set(Some(later));
        assert_eq!(alarm.armed, Some(sooner), "moving it later leaves the kernel alone");
        poll_fn(|cx| alarm.poll_fired(cx)).await;
        assert!(clock.now() >= later);
    }

    #[tokio::test]
    async fn an_alarm_that_was_turned_off_does_not_fire_and_can_be_set_again() {
        let clock = Clock::new();
        let mut alarm = Alarm::new(clock).unwrap();
        let mut other = Alarm::new(clock).unwrap();
        alarm.set(Some(clock.now() + Span::from_micros(100)));
        alarm.set(None);
        other.set(Some(clock.now() + Span::from_millis(2)));
        poll_fn(|cx| {
            assert!(alarm.poll_fired(cx).is_pending(), "it is off");
            other.poll_fired(cx)
        })
        .await;
        alarm.set(Some(clock.now()));
        poll_fn(|cx| alarm.poll_fired(cx)).await;
    }

    #[tokio::test]
    async fn never_is_the_same_as_off() {
        let mut alarm = Alarm::new(Clock::new()).unwrap();
        alarm.set(Some(Instant::FAR_FUTURE));
        assert_eq!(alarm.armed, None);
    }
}
