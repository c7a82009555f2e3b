//! Messages as bytes and back, without a stream: for tests that try any bytes of a peer.
//!
//! tonic cuts a stream into messages. This module decodes one message as tonic then does, and checks it with
//! [`wire`](crate::wire).

use prost::Message;
use weir_control::Standing;
use weir_leases::{Grants, Hello, Report};

use crate::proto;
use crate::proto::from_gateway::Message as Sent;
use crate::wire;

/// A message of a gateway.
#[derive(Clone, PartialEq, Debug)]
pub enum FromGateway {
    /// The first message.
    Hello {
        /// The name that the gateway gives.
        gateway: String,
        /// The rest of the message.
        hello: Hello,
    },
    /// The gateway's observations of an interval.
    Report(Report),
    /// The number of the grants that are in force.
    Acknowledged(u64),
    /// How the gateway's promises stand.
    Standing(Standing),
}

/// A message of a controller.
#[derive(Clone, PartialEq, Debug)]
pub enum FromController {
    /// What the gateway may do.
    Grants(Grants),
    /// How the promises of all other gateways stand.
    Others(Standing),
}

/// Decodes and checks a message of a gateway.
///
/// # Errors
/// If a controller would end the stream because of the message; the text says why.
pub fn from_gateway(bytes: &[u8]) -> Result<FromGateway, String> {
    let message = proto::FromGateway::decode(bytes).map_err(|error| error.to_string())?.message;
    match message.ok_or_else(|| "an empty message".to_owned())? {
        Sent::Hello(sent) => {
            let gateway = sent.gateway.clone();
            Ok(FromGateway::Hello { gateway, hello: wire::hello(sent)? })
        }
        Sent::Report(sent) => wire::report(sent).map(FromGateway::Report),
        Sent::Acknowledged(sent) => Ok(FromGateway::Acknowledged(sent.number)),
        Sent::Standing(sent) => Ok(FromGateway::Standing(wire::standing(sent))),
    }
}

/// Decodes and checks a message of a controller.
///
/// # Errors
/// If a gateway would end the stream because of the message; the text says why.
pub fn from_controller(bytes: &[u8]) -> Result<FromController, String> {
    let sent = proto::FromController::decode(bytes).map_err(|error| error.to_string())?;
    match sent.others {
        Some(others) => Ok(FromController::Others(wire::standing(others))),
        None => wire::grants(sent).map(FromController::Grants),
    }
}

/// A gateway's message as bytes.
pub fn gateway_bytes(message: &FromGateway) -> Vec<u8> {
    match message {
        FromGateway::Hello { gateway, hello } => wire::hello_to_wire(gateway, hello),
        FromGateway::Report(report) => wire::report_to_wire(report),
        FromGateway::Acknowledged(number) => wire::acknowledged_to_wire(*number),
        FromGateway::Standing(standing) => wire::standing_to_wire(standing),
    }
    .encode_to_vec()
}

/// A controller's message as bytes.
pub fn controller_bytes(message: &FromController) -> Vec<u8> {
    match message {
        FromController::Grants(grants) => wire::grants_to_wire(grants),
        FromController::Others(others) => wire::others_to_wire(others),
    }
    .encode_to_vec()
}
