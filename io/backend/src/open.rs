//! Makes a device from the operator's configuration: opens it on the main thread, and attaches it on the
//! thread that drives it.

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

/// The place where a volume keeps its bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum BackendSpec {
    /// A regular file or a block device.
    File {
        /// Its path.
        path: PathBuf,
    },
    /// Memory of this process.
    Memory,
    /// A volume on a simulated device. Volumes with the same name, number of servers and service time share
    /// one station, if they live on the same thread.
    Station {
        /// The station's name.
        name: String,
        /// How many requests it serves at a time.
        servers: NonZeroU32,
        /// How long the station takes for each request.
        service_time: Span,
    },
    /// A volume on a simulated array. Volumes whose arrays have the same name and the same options share one
    /// array, if they live on the same thread. Each volume has its own part of it.
    Array {
        /// The array's name.
        name: String,
        /// The array's options. They must pass their own check.
        array: Arc<ArrayOptions>,
        /// The file with the volume's bytes.
        path: PathBuf,
    },
    /// An export of another NBD server.
    Upstream {
        /// Its address and the name of the export.
        target: Target,
        /// How many connections to make, if the server allows several.
        connections: NonZeroU32,
    },
}

/// A backend that is open and not yet in use. It can be sent to the thread that will drive it.
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

/// The parts that the devices of a thread share.
#[derive(Debug)]
pub struct Attach {
    /// The reactor through which files are read and written, and other servers are asked.
    pub reactor: Reactor,
    /// The stations that have a volume.
    stations: BTreeMap<StationKey, Weak<RefCell<Station>>>,
    /// The arrays that have a volume. There are only a few.
    arrays: Vec<(ArrayKey, Weak<RefCell<SharedArray>>)>,
}

/// Opens a backend of `size` bytes.
///
/// - **File:** a missing file is created, sparse; a shorter file is made longer. Without a size, the file
///   must exist, and keeps its own size. The file is locked, so that no other volume or server can serve it
///   too.
/// - **Block device:** it may be larger than `size`; the bytes beyond are not touched. It is locked, too.
/// - **Memory, station, array:** they need a size. A volume on an array must fit on it.
/// - **Another server:** it is connected to, which takes some seconds at most. It states its own size.
///
/// # Errors
/// If the backend cannot be opened or locked, or is no file. If its size does not fit, there or in the
/// address space. If the other server cannot be reached or refuses. Then nothing was changed.
///
/// # Panics
/// If a size is given for another server.
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
    /// The properties that the device will have.
    pub fn properties(&self) -> Properties {
        match &self.backend {
            Backend::File(file) | Backend::Array(_, file) => FileDevice::properties_of(file.size),
            Backend::Memory(memory) | Backend::Station(_, memory) => memory.properties(),
            Backend::Upstream(upstream) => upstream.properties(),
        }
    }

    /// Takes back the changes of [`open`]: removes a file that it created, cuts off the bytes that it added
    /// to a file. Call this if something else fails before the volume is served.
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

    /// The station of this key; a new one if no volume has it yet.
    fn station(&mut self, key: StationKey) -> Rc<RefCell<Station>> {
        self.stations.retain(|_, station| station.strong_count() > 0);
        if let Some(station) = self.stations.get(&key).and_then(Weak::upgrade) {
            return station;
        }
        let station = Rc::new(RefCell::new(Station::new(key.1, key.2)));
        self.stations.insert(key, Rc::downgrade(&station));
        station
    }

    /// The array of this key; a new one if no volume has it yet.
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
