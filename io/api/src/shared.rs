//! Reports over HTTP. All clients that ask at the same time share one answer.
//!
//! A report about 1,000 volumes takes a tenth of a second and 14 MB, and any client may ask for it. So each
//! report has one maker at each address. The maker makes one answer after the other, and renders it on a
//! thread of its own. Clients that ask while an answer is made get the next answer, which is begun after they
//! asked. The bytes of an answer are shared: a client that reads slowly has no copy of its own.
//!
//! Clients that read nothing could still hold one answer each, if they asked one after the other. So at most
//! [`MOST_HELD`] answers are kept. While clients hold that many, further clients get the latest of them. That
//! answer is no older than `limits.api_timeout`. By then, the clients that held the answer before it are
//! closed, and a new answer is made.

use std::fmt::Display;
use std::sync::{Arc, Weak};

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// The most answers of a report that are kept at a time.
const MOST_HELD: usize = 2;

/// How many questions wait in the channel; further questions wait before it.
const ASKERS: usize = 32;

/// A report that clients can ask for.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    asked: mpsc::Sender<Asker>,
    content_type: &'static str,
}

/// The channel to a client that waits for an answer; `None` if no answer could be made.
type Asker = oneshot::Sender<Option<Arc<Vec<u8>>>>;

/// The bytes of an answer, as the body of a response.
struct Held(Arc<Vec<u8>>);

impl Shared {
    /// A report of this content type, and its maker. The maker ends when no client can ask any more. It
    /// collects on this thread, and renders on another.
    pub(crate) fn new<T, E>(
        content_type: &'static str,
        collect: impl AsyncFn() -> T,
        render: fn(T) -> Result<Vec<u8>, E>,
    ) -> (Self, impl Future<Output = ()>)
    where
        T: Send + 'static,
        E: Display + Send + 'static,
    {
        let (asked, askers) = mpsc::channel(ASKERS);
        (Self { asked, content_type }, make(askers, collect, render))
    }

    async fn answer(&self) -> Option<Arc<Vec<u8>>> {
        let (asker, answer) = oneshot::channel();
        self.asked.send(asker).await.ok()?;
        answer.await.ok()?
    }
}

/// Answers with the report.
pub(crate) async fn tell(State(shared): State<Shared>) -> Response {
    match shared.answer().await {
        Some(answer) => {
            let body = Body::from(Bytes::from_owner(Held(answer)));
            ([(header::CONTENT_TYPE, shared.content_type)], body).into_response()
        }
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Makes one answer after the other for the clients that ask.
async fn make<T, E>(
    mut askers: mpsc::Receiver<Asker>,
    collect: impl AsyncFn() -> T,
    render: fn(T) -> Result<Vec<u8>, E>,
) where
    T: Send + 'static,
    E: Display + Send + 'static,
{
    let mut made: Vec<Weak<Vec<u8>>> = Vec::new();
    let mut waiting = Vec::new();
    while askers.recv_many(&mut waiting, ASKERS).await > 0 {
        waiting.retain(|asker| !asker.is_closed());
        if waiting.is_empty() {
            continue; // all have gone
        }
        made.retain(|answer| answer.strong_count() > 0);
        let latest = made.get(MOST_HELD - 1).and_then(Weak::upgrade);
        let answer = if latest.is_some() {
            latest
        } else {
            let collected = collect().await;
            let rendered = spawn_blocking(move || render(collected).map_err(|error| error.to_string())).await;
            match rendered.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(mut bytes) => {
                    bytes.shrink_to_fit();
                    Some(Arc::new(bytes))
                }
                Err(error) => {
                    tracing::error!(listener = "http", %error, "cannot make a report");
                    None
                }
            }
        };
        if let Some(answer) = &answer
            && !made.iter().any(|known| known.as_ptr() == Arc::as_ptr(answer))
        {
            made.push(Arc::downgrade(answer));
        }
        for asker in waiting.drain(..) {
            let _ = asker.send(answer.clone()); // or it has gone
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::thread::{self, ThreadId};

    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    use super::*;

    /// Runs `asking` beside the maker of a report of a megabyte. The maker calls `collect`.
    async fn beside<T>(collect: impl AsyncFn(), asking: impl AsyncFnOnce(Shared) -> T) -> T {
        let render = |()| Ok::<_, Infallible>(vec![b'a'; 1 << 20]);
        let (shared, making) = Shared::new("text/plain", collect, render);
        tokio::select! {
            done = asking(shared) => done,
            () = making => unreachable!("somebody can ask"),
        }
    }

    #[tokio::test]
    async fn all_who_ask_while_an_answer_is_made_get_the_next_one_and_who_has_gone_gets_none_made() {
        let (begun, may_go_on) = (Cell::new(0), Semaphore::new(0));
        let collect = async || {
            begun.set(begun.get() + 1);
            may_go_on.acquire().await.unwrap().forget();
        };
        beside(collect, async |shared| {
            let ask = || Box::pin(shared.answer());
            let mut first = ask();
            let mut others: Vec<_> = (0..31).map(|_| ask()).collect();
            let mut impatient = ask();
            assert!(poll_once(&mut first).await.is_none());
            while begun.get() == 0 {
                yield_now().await;
            }
            for other in &mut others {
                assert!(poll_once(other).await.is_none(), "it waits");
            }
            may_go_on.add_permits(1);
            let first = first.await.unwrap();
            while begun.get() == 1 {
                yield_now().await;
            }
            assert!(poll_once(&mut impatient).await.is_none());
            drop(impatient);
            may_go_on.add_permits(1);
            let mut second = BTreeSet::new();
            for other in others {
                second.insert(Arc::as_ptr(&other.await.unwrap()));
            }
            assert_eq!(second.len(), 1, "one answer for all");
            assert!(!second.contains(&Arc::as_ptr(&first)), "which was begun after they asked");
            for _ in 0..100 {
                yield_now().await;
            }
            assert_eq!(begun.get(), 2);
        })
        .await;
    }

    /// The output of a future if it is ready when it is polled once.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn peers_that_take_nothing_hold_two_answers_together_and_then_there_are_new_ones() {
        beside(
            async || {},
            async |shared| {
                let mut held = Vec::new();
                for _ in 0..32 {
                    held.push(shared.answer().await.unwrap());
                }
                let kept: BTreeSet<_> = held.iter().map(Arc::as_ptr).collect();
                assert_eq!(kept.len(), MOST_HELD);
                held.remove(0);
                let fresh = shared.answer().await.unwrap();
                assert!(!Arc::ptr_eq(&fresh, &held[0]), "the first answer was held by nobody else");
            },
        )
        .await;
    }

    #[tokio::test]
    async fn a_report_is_rendered_on_another_thread_than_it_is_asked_for() {
        let render = |caller: ThreadId| Ok::<_, Infallible>(vec![u8::from(thread::current().id() != caller)]);
        let (shared, making) = Shared::new("text/plain", async || thread::current().id(), render);
        let answer = tokio::select! {
            answer = shared.answer() => answer,
            () = making => None,
        };
        assert_eq!(answer.as_deref(), Some(&vec![1]));
    }
}
