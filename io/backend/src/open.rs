//! From what the operator wrote to a device: opening, on the main thread, and attaching, on the thread that
//! drives it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use weir_model::Span;

use crate::file::{self, FileDevice, OpenFile};
use crate::memory::MemoryDevice;
use crate::station::{Station, StationDevice};
use crate::{BlockDevice, Device, FaultRule, OpenError, Properties, Ring};

/// What a volume keeps its bytes on.
#[derive(Clone, PartialEq, Eq, Debug)]
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
}

type StationKey = (String, NonZeroU32, Span);

/// What the devices of a thread share.
#[derive(Debug)]
pub struct Attach {
    /// Through which files are read and written.
    pub ring: Ring,
    /// The stations that have a volume.
    stations: BTreeMap<StationKey, Weak<RefCell<Station>>>,
}

/// Opens a backend of `size` bytes.
///
/// A file that is missing is created, sparse; one that is shorter is made longer; without a size it must exist,
/// and has the size that it has. A block device may be larger than `size`; what is beyond is not touched. The
/// others need a size. A file is locked, so that no other volume or server can serve it too.
///
/// # Errors
/// If the backend cannot be opened or locked, is no file, or its size does not fit, there or in the
/// address space. Nothing was changed then.
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
    };
    Ok(Opened { backend })
}

impl Opened {
    /// What the device will be.
    pub fn properties(&self) -> Properties {
        match &self.backend {
            Backend::File(file) => FileDevice::properties_of(file.size),
            Backend::Memory(memory) | Backend::Station(_, memory) => memory.properties(),
        }
    }

    /// Takes back what [`open`] did: removes a file that it created, cuts off what it added to one. For when
    /// something else fails before the volume is served.
    pub fn discard(self) {
        if let Backend::File(file) = self.backend {
            file.discard();
        }
    }

    /// Makes the device, on the thread that will drive it, with `faults` in front of it.
    pub fn attach(self, shard: &mut Attach, faults: Vec<FaultRule>) -> Device {
        let inner: Box<dyn BlockDevice> = match self.backend {
            Backend::File(file) => {
                let ring_file = shard.ring.add(file.descriptors, file.abilities);
                Box::new(FileDevice::new(ring_file, file.size))
            }
            Backend::Memory(memory) => Box::new(memory),
            Backend::Station(key, memory) => Box::new(StationDevice::new(shard.station(key), memory)),
        };
        Device::new(inner, faults)
    }
}

impl Attach {
    /// A thread with this ring and no devices.
    pub fn new(ring: Ring) -> Self {
        Self { ring, stations: BTreeMap::new() }
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
}
