//! From what the operator wrote to a device: opening, on the main thread, and attaching, on the thread that
//! drives it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use weir_model::Span;
use weir_nbd::client::Target;
use weir_sim::ArrayOptions;

use crate::array::{ArrayDevice, SharedArray};
use crate::file::{self, FileDevice, OpenFile};
use crate::memory::MemoryDevice;
use crate::station::{Station, StationDevice};
use crate::upstream::{self, OpenUpstream};
use crate::{BlockDevice, Device, FaultRule, OpenError, Properties, Reactor};

/// What a volume keeps its bytes on.
#[derive(Clone, PartialEq, Debug)]
pub enum BackendSpec {
    /// A regular file or a block device.
    File {
        /// Where it is.
        path: PathBuf,
    },
    /// Memory of this process.
    Memory,
    /// A volume on a simulated device. Volumes whose name, number of servers and service time are the same
    /// share one, if they live on the same thread.
    Station {
        /// The station's name.
        name: String,
        /// How many requests it serves at a time.
        servers: NonZeroU32,
        /// How long it takes for each.
        service_time: Span,
    },
    /// A volume on a simulated array. Volumes whose array has the same name and is alike share one, if they
    /// live on the same thread; each has a part of it of its own.
    Array {
        /// The array's name.
        name: String,
        /// What it is like; must pass its own check.
        array: Arc<ArrayOptions>,
        /// The file with the volume's bytes.
        path: PathBuf,
    },
    /// An export of another NBD server.
    Upstream {
        /// Where it is.
        target: Target,
        /// How many connections are made to a server that allows several.
        connections: NonZeroU32,
    },
}

/// A backend that is open and not yet in use. Can be sent to the thread that will drive it.
#[derive(Debug)]
pub struct Opened {
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    File(Box<OpenFile>),
    Memory(MemoryDevice),
    Station(StationKey, MemoryDevice),
    Array(ArrayKey, Box<OpenFile>),
    Upstream(Box<OpenUpstream>),
}

type StationKey = (String, NonZeroU32, Span);
type ArrayKey = (String, Arc<ArrayOptions>);

/// What the devices of a thread share.
#[derive(Debug)]
pub struct Attach {
    /// Through which files are read and written, and other servers are asked.
    pub reactor: Reactor,
    /// The stations that have a volume.
    stations: BTreeMap<StationKey, Weak<RefCell<Station>>>,
    /// The arrays that have a volume: a few.
    arrays: Vec<(ArrayKey, Weak<RefCell<SharedArray>>)>,
}

/// Opens a backend of `size` bytes.
///
/// A file that is missing is created, sparse; one that is shorter is made longer; without a size it must
/// exist, and has the size that it has. A block device may be larger than `size`; what is beyond is not
/// touched. The others need a size, and one on an array must fit on it; but for another server, which says
/// what it has. A file is locked, so that no other volume or server can serve it too. Another server is
/// connected to, which takes some seconds at most.
///
/// # Errors
/// If the backend cannot be opened or locked, is no file, or its size does not fit, there or in the
/// address space; or if the other server cannot be reached or refuses. Nothing was changed then.
///
/// # Panics
/// If a size is given for what another server has.
pub fn open(spec: &BackendSpec, size: Option<u64>) -> Result<Opened, OpenError> {
    let memory = |backend| {
        let size = size.filter(|size| *size > 0).ok_or(OpenError::SizeNeeded { backend })?;
        MemoryDevice::new(size).map_err(|source| OpenError::NoMemory { backend, size, source })
    };
    let backend = match spec {
        BackendSpec::File { path } => Backend::File(Box::new(file::open(path, size)?)),
        BackendSpec::Memory => Backend::Memory(memory("memory")?),
        BackendSpec::Station { name, servers, service_time } => {
            Backend::Station((name.clone(), *servers, *service_time), memory("station")?)
        }
        BackendSpec::Array { name, array, path } => Backend::Array(
            (name.clone(), Arc::clone(array)),
            Box::new(open_on_array(name, array, path, size)?),
        ),
        BackendSpec::Upstream { target, connections } => {
            assert_eq!(size, None, "the server says how large it is");
            Backend::Upstream(Box::new(upstream::open(target, *connections)?))
        }
    };
    Ok(Opened { backend })
}

/// Opens the file of a volume that fits on the array.
fn open_on_array(
    name: &str,
    array: &ArrayOptions,
    path: &Path,
    size: Option<u64>,
) -> Result<OpenFile, OpenError> {
    let size = size.filter(|size| *size > 0).ok_or(OpenError::SizeNeeded { backend: "array" })?;
    let capacity = array.size();
    if size > capacity {
        return Err(OpenError::ArraySmaller { array: name.to_owned(), capacity, size });
    }
    Ok(file::open(path, Some(size))?.through_the_page_cache())
}

impl Opened {
    /// What the device will be.
    pub fn properties(&self) -> Properties {
        match &self.backend {
            Backend::File(file) | Backend::Array(_, file) => FileDevice::properties_of(file.size),
            Backend::Memory(memory) | Backend::Station(_, memory) => memory.properties(),
            Backend::Upstream(upstream) => upstream.properties(),
        }
    }

    /// Takes back what [`open`] did: removes a file that it created, cuts off what it added to one. For when
    /// something else fails before the volume is served.
    pub fn discard(self) {
        if let Backend::File(file) | Backend::Array(_, file) = self.backend {
            file.discard();
        }
    }

    /// Makes the device, on the thread that will drive it, with `faults` in front of it.
    pub fn attach(self, shard: &mut Attach, faults: Vec<FaultRule>) -> Device {
        let inner: Box<dyn BlockDevice> = match self.backend {
            Backend::File(file) => {
                file.tell_if_longer();
                let ring_file = shard.reactor.add(file.descriptors, file.abilities);
                Box::new(FileDevice::new(ring_file, file.size))
            }
            Backend::Memory(memory) => Box::new(memory),
            Backend::Station(key, memory) => Box::new(StationDevice::new(shard.station(key), memory)),
            Backend::Array(key, file) => {
                file.tell_if_longer();
                let (ring_file, kept) = shard.reactor.add_kept(file.descriptors, file.abilities);
                Box::new(ArrayDevice::new(shard.array(key), ring_file, kept, file.size))
            }
            Backend::Upstream(upstream) => Box::new(upstream.attach(&shard.reactor)),
        };
        Device::new(inner, faults)
    }
}

impl Attach {
    /// A thread with this reactor and no devices.
    pub fn new(reactor: Reactor) -> Self {
        Self { reactor, stations: BTreeMap::new(), arrays: Vec::new() }
    }

    /// The station of this key, a new one if it has no volume.
    fn station(&mut self, key: StationKey) -> Rc<RefCell<Station>> {
        self.stations.retain(|_, station| station.strong_count() > 0);
        if let Some(station) = self.stations.get(&key).and_then(Weak::upgrade) {
            return station;
        }
        let station = Rc::new(RefCell::new(Station::new(key.1, key.2)));
        self.stations.insert(key, Rc::downgrade(&station));
        station
    }

    /// The array of this key, a new one if it has no volume.
    fn array(&mut self, key: ArrayKey) -> Rc<RefCell<SharedArray>> {
        self.arrays.retain(|(_, array)| array.strong_count() > 0);
        let known = self.arrays.iter().find(|(known, _)| *known == key);
        if let Some(array) = known.and_then(|(_, array)| array.upgrade()) {
            return array;
        }
        let array = Rc::new(RefCell::new(SharedArray::new(&key.1)));
        self.arrays.push((key, Rc::downgrade(&array)));
        array
    }
}
