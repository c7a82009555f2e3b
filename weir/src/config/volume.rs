//! `[volume.NAME]`: a disk for clients, with its backend and its promise.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

use bytesize::ByteSize;
use weir_load::Target;
use weir_model::{Bandwidth, Iops, Priority, Slo, SloError, SloGoal, SloPoint, Span};

use super::accepts::{self, Accepts};
use super::fault::{self, Fault};
use super::objective;
use super::origin::{Origin, Resolved};
use super::reader::{Element, Section};

pub(super) const KEYS: &[&str] = &[
    "pool",
    "backend",
    "size",
    "connections",
    "description",
    "slo",
    "slo_goal",
    "target",
    "priority",
    "max_iops",
    "max_bandwidth",
    "max_concurrency",
    "faults",
];

pub(super) const SLO_KEYS: &[&str] = &["up_to", "read", "write"];

const BACKENDS: &str = "\"file:/path\" (absolute), \"memory\", \"station:NAME\", \"array:NAME:/path\", \
     \"nbd://host:port/export\" or \"nbd+unix:///export?socket=/path\"";

/// The default number of connections to a server that allows several.
const CONNECTIONS: NonZeroU32 = NonZeroU32::new(4).expect("above zero");

/// The longest string of the NBD protocol, the description of an export included.
const MOST_DESCRIPTION: usize = 4096;

/// The largest size: an offset into a file is signed.
const LARGEST: ByteSize = ByteSize::b(i64::MAX.cast_unsigned());

/// The most connections: more than any server has cores for.
const MOST_CONNECTIONS: u32 = 64;

/// A volume, which clients see as a disk.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Volume {
    /// The name of its pool.
    pub(crate) pool: Resolved<String>,
    /// Where its bytes are.
    pub(crate) backend: Resolved<BackendConfig>,
    /// Its size. A file without one keeps its own size; another server has its own.
    pub(crate) size: Resolved<Option<ByteSize>>,
    /// How many connections are made to another server that allows several.
    pub(crate) connections: Resolved<NonZeroU32>,
    /// The description that clients see.
    pub(crate) description: Resolved<Option<String>>,
    /// Its promise.
    pub(crate) slo: Resolved<Option<Slo>>,
    /// The place of each point of the SLO in the file.
    pub(crate) slo_points: Vec<Resolved<()>>,
    /// In which share of the windows its promise is to be kept.
    pub(crate) slo_goal: Resolved<SloGoal>,
    /// Its target under Maestro's law.
    pub(crate) target: Resolved<Option<weir_model::Target>>,
    /// How much that target counts.
    pub(crate) priority: Resolved<Priority>,
    /// The request rate that it never exceeds.
    pub(crate) max_iops: Resolved<Option<Iops>>,
    /// The byte rate that it never exceeds.
    pub(crate) max_bandwidth: Resolved<Option<Bandwidth>>,
    /// How many of its requests may be at the device at a time.
    pub(crate) max_concurrency: Resolved<Option<NonZeroU32>>,
    /// The faults of its device. The first rule that hits a request decides.
    pub(crate) faults: Vec<Resolved<Fault>>,
}

/// Where the bytes of a volume are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BackendConfig {
    /// A regular file or a block device; the path is absolute.
    File(PathBuf),
    /// Memory of the gateway: gone when it ends.
    Memory,
    /// Memory behind the station of this name.
    Station(String),
    /// A part of the simulated array of this name, with its bytes in this file; the path is absolute.
    Array(String, PathBuf),
    /// An export of another NBD server.
    Upstream(Target),
}

/// The volume. If it has no pool or no backend, `None` and a noted problem.
pub(super) fn resolve(section: &Section<'_>) -> Option<Volume> {
    let name = Accepts::text("the name of a pool", |text| (!text.is_empty()).then(|| text.to_owned()));
    let backend = Accepts::text(BACKENDS, BackendConfig::read);
    let pool = section.required("pool", &name);
    let backend = section.required("backend", &backend);
    let (slo, slo_points) = resolve_slo(section);
    let volume = |pool, backend: Resolved<BackendConfig>| Volume {
        slo,
        slo_points,
        slo_goal: section.or_default(
            "slo_goal",
            &accepts::goal(),
            SloGoal::default(),
            "one window in a hundred may be missed",
        ),
        pool,
        size: section.optional(
            "size",
            &accepts::size(ByteSize::b(1)..=LARGEST),
            if let BackendConfig::Upstream(_) = backend.value {
                "the size that the server has"
            } else {
                "the size that the file has"
            },
        ),
        connections: section.or_default(
            "connections",
            &accepts::count(MOST_CONNECTIONS),
            CONNECTIONS,
            "many servers work on each with threads of its own",
        ),
        backend,
        target: objective::resolve_target(section),
        priority: objective::resolve_priority(section),
        description: section.optional("description", &description(), "nothing to say"),
        max_iops: section.optional("max_iops", &accepts::iops(), "no cap"),
        max_bandwidth: section.optional("max_bandwidth", &accepts::bandwidth(), "no cap"),
        max_concurrency: section.optional("max_concurrency", &accepts::count(65_536), "no cap"),
        faults: fault::resolve(section),
    };
    match (pool, backend) {
        (Some(pool), Some(backend)) => Some(volume(pool, backend)),
        (pool, backend) => {
            // The other keys are read all the same, to find the problems in them.
            let pool = pool.unwrap_or_else(|| Resolved::placeholder(String::new()));
            volume(pool, backend.unwrap_or_else(|| Resolved::placeholder(BackendConfig::Memory)));
            None
        }
    }
}

impl BackendConfig {
    fn read(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("file", path)) => file_path(path).map(Self::File),
            Some(("array", rest)) => {
                let (name, path) = rest.split_once(':').filter(|(name, _)| !name.is_empty())?;
                Some(Self::Array(name.to_owned(), file_path(path)?))
            }
            Some(("station", name)) if !name.is_empty() => Some(Self::Station(name.to_owned())),
            Some(("nbd" | "nbd+unix", _)) => text.parse().ok().map(Self::Upstream),
            None if text == "memory" => Some(Self::Memory),
            _ => None,
        }
    }
}

impl fmt::Display for BackendConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Memory => f.write_str("memory"),
            Self::Station(name) => write!(f, "station:{name}"),
            Self::Array(name, path) => write!(f, "array:{name}:{}", path.display()),
            Self::Upstream(target) => target.fmt(f),
        }
    }
}

/// The path of a file, if it is absolute and valid.
fn file_path(path: &str) -> Option<PathBuf> {
    (path.starts_with('/') && !path.contains('\0')).then(|| path.into())
}

fn description() -> Accepts<String> {
    let words = format!("a text of at most {MOST_DESCRIPTION} bytes, on one line");
    Accepts::text(words, |text| {
        (text.len() <= MOST_DESCRIPTION && !text.contains(char::is_control)).then(|| text.to_owned())
    })
}

fn resolve_slo(section: &Section<'_>) -> (Resolved<Option<Slo>>, Vec<Resolved<()>>) {
    let none = (Resolved { value: None, origin: Origin::Default("nothing was promised") }, Vec::new());
    let elements = section.elements(
        "slo",
        "an array of points such as { up_to = \"300iops\", read = \"10ms\", write = \"15ms\" }",
    );
    let Some(points) = elements.iter().map(resolve_point).collect::<Option<Vec<_>>>() else { return none };
    let Some(first) = points.first() else { return none };
    let origin = first.origin;
    match Slo::new(points.iter().map(|point| point.value).collect()) {
        Ok(slo) => {
            let places = points.iter().map(|point| Resolved { value: (), origin: point.origin }).collect();
            (Resolved { value: Some(slo), origin }, places)
        }
        Err(error) => {
            refuse_curve(&elements, &points, error);
            none
        }
    }
}

fn resolve_point(element: &Element<'_>) -> Option<Resolved<SloPoint>> {
    let section = element.section(SLO_KEYS)?;
    let latency = accepts::duration(Span::from_micros(1)..=Span::from_secs(3600));
    let up_to = section.required("up_to", &accepts::iops());
    let read = section.required("read", &latency);
    let write = section.required("write", &latency);
    let point = SloPoint { up_to: up_to?.value, read: read?.value, write: write?.value };
    Some(section.resolved(point))
}

/// Notes at which point, and in which key, the curve does not increase.
fn refuse_curve(elements: &[Element<'_>], points: &[Resolved<SloPoint>], error: SloError) {
    let (i, key, accepted) = match error {
        SloError::RateNotIncreasing(i) => {
            (i, "up_to", format!("more than in the point before, {}", points[i - 1].value.up_to))
        }
        SloError::LatencyDecreasing(i) => {
            let (before, here) = (points[i - 1].value, points[i].value);
            let (key, before) =
                if here.read < before.read { ("read", before.read) } else { ("write", before.write) };
            let before = super::units::show_span(before);
            (i, key, format!("no less than in the point before, at a lower rate, {before}"))
        }
        SloError::Empty | SloError::ZeroLatency(_) => unreachable!("refused before: {error}"),
    };
    if let Some(section) = elements[i].section(SLO_KEYS) {
        section.refuse(key, &accepted);
    }
}
