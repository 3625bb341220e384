//! The backend of [`MemoryKind::Hip`] and [`MemoryKind::Cuda`].

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::Path;
use std::time::{Duration, Instant};

use dnn_assay_abi::gpu::{Address, Flavor, NOT_READY, Opaque, SUCCESS};

use super::driver::{Driver, call};
use super::gate::Gate;
use super::guards::{Guards, Table, checks, sum};
use crate::backend::{DeviceBackend, DeviceError, Held, Shortage};
use crate::layout::{Role, Slot};
use crate::map::ArenaMap;
use crate::memory_kind::MemoryKind;
use crate::snapshot::{DeviceCheck, Fill};

/// Addresses on the device have the same low bits as in the arena, up to this many bytes: a
/// buffer is aligned as it declares there, and no better.
const PAGE: u64 = 4096;
/// Memory that is kept for the next case, bytes.
const KEEP: usize = 512 << 20;
/// Outputs of more bytes are not looked at while a stream is held.
const LOOK: usize = 64 << 20;
/// Holds that may end without a result; each may cost half a second.
const DOUBTS: u32 = 3;
/// How long another stream may take to come to an event of its own.
const PROMPT: Duration = Duration::from_millis(200);
/// How much later work on a stream of the plugin's own is still noticed.
const GRACE: Duration = Duration::from_micros(300);

/// Memory and a stream of one device, through a driver library.
///
/// Every slot's whole region, canaries included, has memory of its own. Memory is kept from case to
/// case: allocating is slow, and frees wait for the device.
#[derive(Debug)]
pub struct GpuBackend {
    driver: Driver,
    kind: MemoryKind,
    stream: Opaque,
    /// For looking at memory while the plugin's stream is held.
    other: Opaque,
    /// What looks at guards here, or why that is done on copies.
    pub(super) guards: Result<Guards, String>,
    placed: Vec<Placed>,
    /// The guards' jobs of what is placed.
    table: Option<Table>,
    spare: BTreeMap<usize, Vec<Address>>,
    spare_bytes: usize,
    /// What the device's free memory lost by our allocations, bytes.
    own: i64,
    gate: Option<Hold>,
    /// How often a hold may still end without a result; none where the driver cannot hold, or the
    /// plugin was seen to wait inside an execution.
    patience: u32,
}

#[derive(Debug)]
struct Hold {
    gate: Gate,
    /// Recorded behind the gate.
    event: Opaque,
}

#[derive(Debug)]
struct Placed {
    slot: Slot,
    fill: Fill,
    /// Of the bytes that were copied in, where the device tells whether they change.
    sum: Option<u64>,
    /// What was allocated.
    allocation: Address,
    bytes: usize,
    /// Where the region starts in it.
    region: Address,
}

impl GpuBackend {
    /// Opens device `number` through `library`, or through the flavor's own library.
    ///
    /// # Errors
    /// What is missing, in the driver's or the loader's words.
    pub fn open(flavor: Flavor, number: u32, library: Option<&Path>) -> Result<Self, DeviceError> {
        let driver = Driver::open(flavor, library)?;
        driver.device_count()?;
        driver.select(number)?;
        let can_hold = driver.api.launch_host.is_some();
        Ok(Self {
            stream: driver.new_stream()?,
            other: driver.new_stream()?,
            guards: Guards::load(&driver, number as i32),
            driver,
            kind: match flavor {
                Flavor::Hip => MemoryKind::Hip,
                Flavor::Cuda => MemoryKind::Cuda,
            },
            placed: Vec::new(),
            table: None,
            spare: BTreeMap::new(),
            spare_bytes: 0,
            own: 0,
            gate: None,
            patience: if can_hold { DOUBTS } else { 0 },
        })
    }

    /// Does `act` and counts what free memory lost by it as ours.
    fn counted<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let before = self.driver.memory();
        let result = act(self)?;
        if let (Ok((before, _)), Ok((after, _))) = (before, self.driver.memory()) {
            self.own += before as i64 - after as i64;
        }
        Ok(result)
    }

    fn take(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        if let Some(address) = self.spare.get_mut(&bytes).and_then(Vec::pop) {
            self.spare_bytes -= bytes;
            return Ok(address);
        }
        self.counted(|this| match this.driver.allocate(bytes) {
            Ok(address) => Ok(address),
            Err(_) if this.spare_bytes > 0 => {
                this.free_all()?;
                this.driver.allocate(bytes)
            }
            Err(error) => Err(error),
        })
    }

    fn free_spare(&mut self) -> Result<(), DeviceError> {
        self.counted(Self::free_all)
    }

    fn free_all(&mut self) -> Result<(), DeviceError> {
        self.spare_bytes = 0;
        for address in std::mem::take(&mut self.spare).into_values().flatten() {
            call!(&self.driver, free(address))?;
        }
        Ok(())
    }

    fn new_event(&self) -> Result<Opaque, DeviceError> {
        let mut event = std::ptr::null_mut();
        call!(&self.driver, event_create(&raw mut event, 0))?;
        Ok(event)
    }

    /// Whether an event was reached; `None` where the driver cannot say.
    fn is_reached(&self, event: Opaque) -> Option<bool> {
        let query = self.driver.api.event_query?;
        // SAFETY: an event of this driver.
        match unsafe { query(event) } {
            SUCCESS => Some(true),
            NOT_READY => Some(false),
            _ => None,
        }
    }

    fn look(&self, hold: &Hold, map: &ArenaMap) -> Result<Held, DeviceError> {
        if !hold.gate.is_shut() {
            return Ok(Held::Waited);
        }
        let mark = self.new_event()?;
        call!(&self.driver, event_record(mark, self.other))?;
        let began = Instant::now();
        while self.is_reached(mark) == Some(false) && began.elapsed() < PROMPT {
            std::thread::yield_now();
        }
        let went_on = self.is_reached(mark);
        call!(&self.driver, event_destroy(mark))?;
        if went_on != Some(true) {
            let held = hold.gate.is_shut();
            return Ok(if held {
                Held::OthersHeldUp
            } else {
                Held::Unknown
            });
        }
        // Work on the default stream is over then; a stream of ours does not wait for that one.
        call!(&self.driver, stream_synchronize(std::ptr::null_mut()))?;
        let mut changed = self.changed_output(map)?;
        if changed.is_none() {
            // A stream of the plugin's own may have begun a little later.
            std::thread::sleep(GRACE);
            changed = self.changed_output(map)?;
        }
        // Only now is it known that the plugin's stream was held all the time.
        let behind = self.is_reached(hold.event) == Some(false) && hold.gate.is_shut();
        Ok(match changed {
            _ if !behind => Held::Unknown,
            Some(uid) => Held::Overtaken { uid },
            None => Held::InOrder,
        })
    }

    /// The first output whose memory is not as it was placed.
    fn changed_output(&self, map: &ArenaMap) -> Result<Option<i64>, DeviceError> {
        let Some(seen) = self.seen(self.other)? else {
            return self.changed_copy(map);
        };
        let whole = |placed: &Placed| match &placed.fill {
            Fill::Poison(view, _) => Some(view.count()),
            _ => None,
        };
        let changed = self.placed.iter().zip(&seen).find(|(placed, seen)| {
            let unwritten = seen.output.map(|output| output.unwritten);
            whole(placed).is_some()
                && (!seen.is_intact() || unwritten.is_some_and(|n| Some(n) != whole(placed)))
        });
        Ok(changed.map(|(placed, _)| placed.slot.spec.uid))
    }

    /// What the guards' kernels see, each slot in turn; `None` without them.
    fn seen(&self, stream: Opaque) -> Result<Option<Vec<DeviceCheck>>, DeviceError> {
        let (Ok(guards), Some(table)) = (&self.guards, &self.table) else {
            return Ok(None);
        };
        let seen = table.check(&self.driver, guards, stream)?;
        let placed = self.placed.iter();
        let placed = placed.map(|placed| (&placed.slot, &placed.fill, placed.sum));
        Ok(Some(checks(placed, &seen)))
    }

    /// The same from copies, of as much as is quickly copied.
    fn changed_copy(&self, map: &ArenaMap) -> Result<Option<i64>, DeviceError> {
        let mut left = LOOK;
        for placed in &self.placed {
            let bytes = region_bytes(&placed.slot);
            if placed.slot.spec.role != Role::Output || bytes > left {
                continue;
            }
            left -= bytes;
            let mut now = vec![0u8; bytes];
            let to = now.as_mut_ptr().cast();
            call!(&self.driver, copy_out(to, placed.region, bytes, self.other))?;
            call!(&self.driver, stream_synchronize(self.other))?;
            if !map.region_equals(&placed.slot, &now) {
                return Ok(Some(placed.slot.spec.uid));
            }
        }
        Ok(None)
    }
}

/// Bytes that are allocated for a slot: its region, and room to align it.
fn allocated_bytes(slot: &Slot) -> usize {
    region_bytes(slot) + 2 * slot.spec.align.max(PAGE) as usize
}

fn region_bytes(slot: &Slot) -> usize {
    (slot.region.end - slot.region.start) as usize
}

/// The region's first byte in the mapping.
fn region_in(map: &ArenaMap, slot: &Slot) -> *mut c_void {
    let before = (slot.bytes.start - slot.region.start) as usize;
    map.pointer(slot).cast::<u8>().wrapping_sub(before).cast()
}

impl DeviceBackend for GpuBackend {
    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn stream(&self) -> *mut c_void {
        self.stream
    }

    fn place(
        &mut self,
        map: &ArenaMap,
        slot: &Slot,
        fill: &Fill,
    ) -> Result<*mut c_void, DeviceError> {
        let placed = self.try_place(map, slot, fill);
        self.let_go_unless(placed.is_ok());
        placed
    }

    fn seal(&mut self) -> Result<(), DeviceError> {
        let sealed = self.try_seal();
        self.let_go_unless(sealed.is_ok());
        sealed
    }

    fn checks_copies(&self) -> Option<&str> {
        self.guards.as_ref().err().map(String::as_str)
    }

    fn fills_itself(&self) -> bool {
        self.guards.is_ok()
    }

    fn shortage(&self, slots: &[Slot]) -> Result<Option<Shortage>, DeviceError> {
        let device = |slot: &&Slot| slot.spec.role != Role::HostScalar && slot.spec.size > 0;
        let needs: usize = slots.iter().filter(device).map(allocated_bytes).sum();
        if needs <= self.spare_bytes {
            return Ok(None);
        }
        let (free, _) = self.driver.memory()?;
        let has = (free + self.spare_bytes) as u64;
        let needs = needs as u64;
        Ok((needs > has).then_some(Shortage { needs, has }))
    }

    fn hold(&mut self) -> Result<bool, DeviceError> {
        if self.patience == 0 {
            return Ok(false);
        }
        // What was placed is there before the hold.
        self.synchronize()?;
        let event = self.new_event()?;
        let put = Gate::put(&self.driver, self.stream).and_then(|gate| {
            call!(&self.driver, event_record(event, self.stream))?;
            Ok(gate)
        });
        let Ok(gate) = put else {
            // A driver without host functions can do everything else.
            self.patience = 0;
            call!(&self.driver, event_destroy(event))?;
            return Ok(false);
        };
        self.gate = Some(Hold { gate, event });
        Ok(true)
    }

    fn let_go(&mut self, map: &ArenaMap) -> Result<Held, DeviceError> {
        let Some(hold) = self.gate.take() else {
            return Ok(Held::Unknown);
        };
        let held = self.look(&hold, map);
        hold.gate.open();
        match held {
            Ok(Held::Waited) => self.patience = 0,
            Ok(Held::Unknown | Held::OthersHeldUp) | Err(_) => self.patience -= 1,
            Ok(Held::InOrder | Held::Overtaken { .. }) => {}
        }
        call!(&self.driver, event_destroy(hold.event))?;
        held
    }

    fn used_by_others(&self) -> Option<u64> {
        let (free, total) = self.driver.memory().ok()?;
        u64::try_from((total - free) as i64 - self.own).ok()
    }

    fn is_broken(&mut self) -> bool {
        self.synchronize().is_err() || self.driver.memory().is_err()
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        call!(&self.driver, stream_synchronize(self.stream))
    }

    fn collect(&mut self, map: &ArenaMap) -> Result<Vec<DeviceCheck>, DeviceError> {
        let collected = self.try_collect(map);
        self.let_go_unless(collected.is_ok());
        collected
    }

    fn release(&mut self) -> Result<(), DeviceError> {
        let table = self.table.take();
        let table = table.map(|table| (table.bytes, table.allocation));
        let placed = std::mem::take(&mut self.placed);
        let placed = placed.into_iter().map(|p| (p.bytes, p.allocation));
        for (bytes, allocation) in placed.chain(table) {
            self.spare_bytes += bytes;
            self.spare.entry(bytes).or_default().push(allocation);
        }
        if self.spare_bytes > KEEP {
            self.free_spare()?;
        }
        Ok(())
    }
}

impl GpuBackend {
    /// After a failure nothing may stay placed, and no copy on its way may outlive the mapping.
    fn let_go_unless(&mut self, fine: bool) {
        if !fine {
            let _ = self.synchronize();
            let _ = self.release();
        }
    }

    fn try_place(
        &mut self,
        map: &ArenaMap,
        slot: &Slot,
        fill: &Fill,
    ) -> Result<*mut c_void, DeviceError> {
        let align = slot.spec.align.max(PAGE);
        let bytes = allocated_bytes(slot);
        let allocation = self.take(bytes)?;
        let region = allocation.next_multiple_of(align) + slot.region.start % align;
        let buffer = region + (slot.bytes.start - slot.region.start);
        let looked_at = self.guards.is_ok() && *fill == Fill::Bytes;
        self.placed.push(Placed {
            slot: slot.clone(),
            fill: fill.clone(),
            sum: looked_at.then(|| sum(map.bytes(slot))),
            allocation,
            bytes,
            region,
        });
        let (to, from, bytes) = match (&self.guards, fill) {
            (Err(_), _) => (region, region_in(map, slot), region_bytes(slot)),
            (Ok(_), Fill::Bytes) => (buffer, map.pointer(slot), slot.spec.size as usize),
            (Ok(_), _) => (buffer, map.pointer(slot), 0),
        };
        if bytes > 0 {
            call!(
                &self.driver,
                copy_in(to, from.cast_const(), bytes, self.stream)
            )?;
        }
        Ok(std::ptr::without_provenance_mut(buffer as usize))
    }

    fn try_seal(&mut self) -> Result<(), DeviceError> {
        if self.guards.is_err() || self.placed.is_empty() {
            return Ok(());
        }
        let placed = self.placed.iter();
        let mut table = Table::new(placed.map(|p| (&p.slot, &p.fill, p.region)));
        table.allocation = self.take(table.bytes)?;
        let table = self.table.insert(table);
        match &self.guards {
            Ok(guards) => table.fill(&self.driver, guards, self.stream),
            Err(_) => Ok(()),
        }
    }

    fn try_collect(&mut self, map: &ArenaMap) -> Result<Vec<DeviceCheck>, DeviceError> {
        let seen = self.seen(self.stream)?;
        for (i, placed) in self.placed.iter().enumerate() {
            let slot = &placed.slot;
            let intact = seen.as_ref().is_some_and(|seen| seen[i].is_intact());
            let before = slot.bytes.start - slot.region.start;
            let (to, from, bytes) = match (intact, slot.spec.role) {
                (false, _) => (region_in(map, slot), placed.region, region_bytes(slot)),
                (true, Role::Output) => {
                    let bytes = slot.spec.size as usize;
                    (map.pointer(slot), placed.region + before, bytes)
                }
                (true, _) => continue,
            };
            if bytes > 0 {
                call!(&self.driver, copy_out(to, from, bytes, self.stream))?;
            }
        }
        call!(&self.driver, stream_synchronize(self.stream))?;
        Ok(seen.unwrap_or_default())
    }
}
