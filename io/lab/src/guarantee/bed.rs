//! The volumes of a cell on its array, with one draw.

use weir_model::Span;

use super::draw::{Cell, Draw};
use super::load::Load;
use super::matrix::ArrayCase;
use super::promise::{Metric, Promise, Request};
use super::run::{Decisions, Requests, Volume, run, run_watched};
use super::setting::{Setting, Told};

/// What a cell is with one draw.
pub(super) struct Bed<'c> {
    pub(super) array: &'c ArrayCase,
    pub(super) draw: Draw,
    pub(super) promised: Load,
    pub(super) other: Load,
}

impl Bed<'_> {
    /// The requests of the promised volume, alone on the array.
    ///
    /// # Errors
    /// As [`run`].
    pub(super) fn alone(&self, setting: &Setting) -> anyhow::Result<Vec<Request>> {
        let mut requests = run(self.array, setting.engine, self.draw.seed, &[self.promised(setting)])?;
        Ok(requests.swap_remove(0))
    }

    /// The requests of both volumes: of the promised one, and of the other.
    ///
    /// # Errors
    /// As [`run`].
    pub(super) fn both(&self, setting: &Setting) -> anyhow::Result<[Vec<Request>; 2]> {
        let requests = run(self.array, setting.engine, self.draw.seed, &self.volumes(setting))?;
        Ok(requests.try_into().expect("two volumes were run"))
    }

    /// The same, with what the law decided.
    ///
    /// # Errors
    /// As [`run`].
    pub(super) fn both_watched(&self, setting: &Setting) -> anyhow::Result<(Requests, Decisions)> {
        run_watched(self.array, setting.engine, self.draw.seed, &self.volumes(setting))
    }

    fn volumes(&self, setting: &Setting) -> [Volume<'_>; 2] {
        let (load, from) = (&self.other, self.draw.other_from);
        let other = Volume { name: "other", half: 1, load, from, config: setting.other.clone() };
        [self.promised(setting), other]
    }

    fn promised(&self, setting: &Setting) -> Volume<'_> {
        let (load, from) = (&self.promised, self.draw.promised_from);
        Volume { name: "promised", half: 0, load, from, config: setting.promised.clone() }
    }
}

/// The promise of a cell, by the latencies of its volume alone.
pub(super) fn told(cell: &Cell, alone: &[Request]) -> Told {
    let times = |span: Span| Span::from_secs_f64(span.as_secs_f64() * cell.factor);
    let least = Span::from_micros(1);
    let of = |metric: Metric| times(metric.of(alone)).max(least);
    Told { promise: Promise { metric: cell.metric, limit: of(cell.metric) }, mean: of(Metric::Mean) }
}
