//! How messages become bytes: as the library does it, with buffers that begin small.
//!
//! The library gives each stream two buffers of 8 KiB. A transfer that waits has a stream for hours, with
//! messages of some hundred bytes. With 10,000 of them, the buffers would take more memory than everything
//! else. Buffers grow when a message needs that.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// What a buffer has at first, in bytes.
const BEGINS: usize = 256;
/// How many bytes are gathered before they are handed on, as with the library.
const HANDED_ON: usize = 32 * 1024;

/// Messages to send and messages to receive.
#[derive(Debug)]
pub(crate) struct SmallBuffers<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallBuffers<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallBuffers<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(BufferSettings::new(BEGINS, HANDED_ON))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::new(BufferSettings::new(BEGINS, HANDED_ON))
    }
}
