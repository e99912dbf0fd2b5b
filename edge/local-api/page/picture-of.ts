import type { HardwareDescription } from '../../../protocol/model/hardware.ts'
import type { HubPicture, PictureDoor, PictureRow } from '../../../protocol/ui/picture-model.ts'
import type { Location } from '../../../protocol/model/location.ts'
import type { LocalState } from './local-state.ts'

/** The picture of a hub from its sensors and its journal. */
export function pictureOf({ controllers }: HardwareDescription, state: LocalState): HubPicture {
  const { health, orders, held, links, foreign_controllers: foreign } = state
  const numberOf = (id: string | null): string | null => {
    const order = orders.find(({ order_id }) => order_id === id)
    return order ? `order ${order.order_number}` : null
  }
  const devices = controllers.flatMap((controller) => controller.devices)
  const door = (id: string): PictureDoor | null => {
    const found = health.doors.find((one) => one.door === id)
    if (!found) return null
    return { id, ...doorOf(found.status), trouble: alarmOf(state, `door ${id}`) }
  }
  return {
    bins: health.bins.map((bin) => ({
      id: `bin-${bin.bin_number}`,
      number: bin.bin_number,
      door: bin.door,
      lift: bin.lift,
      units: null,
      occupied: bin.occupied,
      note:
        numberOf(bin.order_id) ??
        (held.bins.includes(bin.bin_number) ? 'held' : bin.enabled ? null : 'disabled'),
      trouble:
        bin.status === 'offline' ? 'Not connected' : bin.fault_code ? `Fault: ${bin.fault_code}` : null,
    })),
    cabinets: devices
      .filter((device) => device.kind === 'cabinet')
      .map(({ number, shelves }) => ({
        id: `cabinet-${number}`,
        number,
        shelves: shelves.map(({ shelf, rows, depth }) => ({
          shelf,
          rows: Array.from({ length: rows }, (_, index) =>
            rowOf(state, { cabinet: number, shelf, row: index + 1 }, depth),
          ),
        })),
        trouble: alarmOf(state, `cabinet ${number}`),
      })),
    fridges: health.fridges.map((fridge) => ({
      id: `fridge-${fridge.fridge_number}`,
      number: fridge.fridge_number,
      celsius: fridge.temperature,
      trouble: fridge.shutoff
        ? 'Too warm for too long: not sold'
        : (unreadable(state, fridge.fridge_number) ??
          (fridge.status === 'healthy' || fridge.status === 'maintenance' ? null : fridge.status)),
      doors: health.doors
        .map((one) => one.door)
        .filter((name) => name.startsWith(`fridge_${fridge.fridge_number}_`))
        .flatMap((name) => door(name) ?? []),
    })),
    main: door('main'),
    controllers: links.map((link) => ({
      id: link.controller,
      powered: true,
      connected: link.up,
      devices: controllers
        .filter(({ id }) => id === link.controller)
        .flatMap((one) => one.devices.map(({ kind, number }) => `${kind}-${number}`)),
      traffic: 0,
      trouble: foreign.includes(link.controller)
        ? 'Not this hub’s board'
        : link.up
          ? null
          : `Not connected${link.reason === null ? '' : `: ${link.reason}`}`,
    })),
  }
}

function rowOf({ stock, alarms }: LocalState, at: Location, depth: number): PictureRow {
  const { cabinet, shelf, row } = at
  const facing = stock.find(
    ({ location }) => location.cabinet === cabinet && location.shelf === shelf && location.row === row,
  )
  // A hub that lost its journal does not know the units of a row until a person counts them.
  const isLost = alarms.some(({ code }) => code === 'journal_lost')
  return {
    shelf,
    row,
    units: facing === undefined ? 0 : facing.quantity === 0 && isLost ? null : facing.quantity,
    depth: facing?.capacity ?? depth,
    product: facing ? (facing.name ?? `product ${facing.product_id}`) : null,
    blocked: facing?.blocked ?? null,
  }
}

/** Why the fridge's temperature is unknown; null while it is known. */
function unreadable({ readings }: LocalState, fridge: number): string | null {
  const reading = readings.find(({ fridge_number }) => fridge_number === fridge)
  return reading?.why == null ? null : `Temperature unknown: ${reading.why}`
}

/** A door's state by its status. Whether an open door is locked is not known. */
const doorOf = (status: string): { open: boolean | null; locked: boolean | null } => ({
  open: status === 'unknown' ? null : status === 'open',
  locked: status === 'locked' ? true : status === 'unlocked' ? false : null,
})

const alarmOf = ({ alarms }: LocalState, subject: string): string | null =>
  alarms.find((alarm) => alarm.subject === subject)?.code.replaceAll('_', ' ') ?? null
