//! The volumes of a cell on its array, with one draw.

use weir_model::Span;

use super::draw::{Cell, Draw};
use super::gateways::Gateways;
use super::load::Load;
use super::matrix::ArrayCase;
use super::promise::{Metric, Promise, Request};
use super::run::{Decisions, Requests, Volume, run, run_apart, run_watched};
use super::setting::{Setting, Told};

/// The names of the other volume's parts: one for each gateway that its clients may be behind.
const OTHERS: [&str; Gateways::MOST as usize - 1] =
    ["other", "other-2", "other-3", "other-4", "other-5", "other-6", "other-7"];

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

    /// The same, with the two volumes behind several gateways.
    ///
    /// # Errors
    /// As [`run`].
    pub(super) fn both_behind(
        &self,
        gateways: Gateways,
        setting: &Setting,
    ) -> anyhow::Result<[Vec<Request>; 2]> {
        let parts = gateways.parts(&self.other);
        let others = parts.iter().zip(OTHERS).map(|((gateway, load), name)| {
            let (gateway, from, config) = (*gateway, self.draw.other_from, setting.other.clone());
            Volume { name, gateway, half: 1, load, from, config }
        });
        let volumes: Vec<_> = [self.promised(setting)].into_iter().chain(others).collect();
        let (engine, seed) = (setting.engine, self.draw.seed);
        let mut requests = run_apart(self.array, engine, seed, &volumes, gateways.apart)?;
        let promised = requests.swap_remove(0);
        let mut others = requests.concat();
        others.sort_unstable();
        Ok([promised, others])
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
        let other =
            Volume { name: OTHERS[0], gateway: 0, half: 1, load, from, config: setting.other.clone() };
        [self.promised(setting), other]
    }

    fn promised(&self, setting: &Setting) -> Volume<'_> {
        let (load, from) = (&self.promised, self.draw.promised_from);
        Volume { name: "promised", gateway: 0, half: 0, load, from, config: setting.promised.clone() }
    }
}

/// The promise of a cell, by the latencies of its volume alone.
pub(super) fn told(cell: &Cell, alone: &[Request]) -> Told {
    let times = |span: Span| Span::from_secs_f64(span.as_secs_f64() * cell.factor);
    let least = Span::from_micros(1);
    let of = |metric: Metric| times(metric.of(alone)).max(least);
    Told { promise: Promise { metric: cell.metric, limit: of(cell.metric) }, mean: of(Metric::Mean) }
}
