//! The state machine of a controller, whichever law its pool is under, in the form in which the server drives
//! it.

use weir_control::Standing;
use weir_leases::{Connection, Controller, Event, Hello, Messenger, Refused, Report};
use weir_model::{Instant, Span};

use crate::proto::FromController;
use crate::wire;

/// How often the controller of promises looks whether a gateway's connection lives. Two of these are as long
/// as a gateway's word is believed.
const INTERVAL: Span = Span::from_secs(1);

/// What a controller does for its array.
#[derive(Debug)]
pub enum Array {
    /// It shares the array out among its gateways.
    Leases(Box<Controller>),
    /// It tells each gateway how the promises of the others stand.
    Promises(Messenger),
}

/// A message that gateways of the other law send.
type Wrong = String;

impl Array {
    /// How often a connection without messages is tried.
    pub(crate) fn interval(&self) -> Span {
        match self {
            Self::Leases(controller) => controller.config().interval,
            Self::Promises(_) => INTERVAL,
        }
    }

    /// Whether a message that a gateway is too slow to take can be left out.
    pub(crate) const fn may_skip(&self) -> bool {
        matches!(self, Self::Promises(_))
    }

    pub(crate) fn handle_connected(
        &mut self,
        now: Instant,
        name: &str,
        hello: &Hello,
    ) -> Result<Connection, Refused> {
        match self {
            Self::Leases(controller) => controller.handle_connected(now, name, hello),
            Self::Promises(messenger) => messenger.handle_connected(now, name, hello),
        }
    }

    pub(crate) fn handle_report(
        &mut self,
        now: Instant,
        connection: Connection,
        report: Report,
    ) -> Result<(), Wrong> {
        match self {
            Self::Leases(controller) => {
                controller.handle_report(now, connection, report).map_err(|refused| refused.to_string())
            }
            Self::Promises(_) => Err(of_the_other_law("a report", "standings")),
        }
    }

    /// The promises of a gateway stand so.
    pub(crate) fn handle_standing(
        &mut self,
        now: Instant,
        connection: Connection,
        standing: Standing,
    ) -> Result<(), Wrong> {
        match self {
            Self::Leases(_) => Err(of_the_other_law("a standing", "reports and acknowledgements")),
            Self::Promises(messenger) => {
                messenger.handle_standing(now, connection, standing);
                Ok(())
            }
        }
    }

    pub(crate) fn handle_acknowledged(&mut self, now: Instant, connection: Connection, number: u64) {
        if let Self::Leases(controller) = self {
            controller.handle_acknowledged(now, connection, number);
        }
    }

    pub(crate) fn handle_disconnected(&mut self, now: Instant, connection: Connection) {
        match self {
            Self::Leases(controller) => controller.handle_disconnected(now, connection),
            Self::Promises(messenger) => messenger.handle_disconnected(now, connection),
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Leases(controller) => controller.handle_timeout(now),
            Self::Promises(messenger) => messenger.handle_timeout(now),
        }
    }

    pub(crate) fn poll_timeout(&self) -> Instant {
        match self {
            Self::Leases(controller) => controller.poll_timeout(),
            Self::Promises(messenger) => messenger.poll_timeout(),
        }
    }

    pub(crate) fn poll_message(&mut self, now: Instant) -> Option<(Connection, FromController)> {
        match self {
            Self::Leases(controller) => {
                let (to, grants) = controller.poll_grants(now)?;
                Some((to, wire::grants_to_wire(&grants)))
            }
            Self::Promises(messenger) => {
                let (to, others) = messenger.poll_message(now)?;
                Some((to, wire::others_to_wire(&others)))
            }
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Leases(controller) => controller.poll_event(),
            Self::Promises(messenger) => messenger.poll_event(),
        }
    }

    pub(crate) fn is_connected(&self, connection: Connection) -> bool {
        match self {
            Self::Leases(controller) => controller.is_connected(connection),
            Self::Promises(messenger) => messenger.is_connected(connection),
        }
    }
}

fn of_the_other_law(found: &str, accepted: &str) -> Wrong {
    format!("{found}; accepted from this gateway: {accepted}")
}
