import type { Api } from '../../../protocol/client/client.ts'
import type { HubPicture, PictureDoor, PictureRow } from '../../../protocol/ui/picture-model.ts'
import { all, ask, can } from './session.ts'

type Answer<E extends keyof Api> = Api[E]['answer']
type Fleet = Answer<'GET /owners/fleet'>['data'][number]

/** Everything that the page of a hub shows. Lists that the role does not include are empty. */
export interface HubView {
  id: number
  info: Answer<'GET /owners/hubs/get_hub_info/'>
  fleet: Fleet
  health: Answer<'GET /owners/hubs/get_hub_health/'>
  doors: Answer<'GET /owners/get_door_status/'>['door_status']
  layout: Answer<'GET /owners/hubs/hub_layout/'>['layout']
  facings: Answer<'GET /owners/hubs/facings'>
  products: Answer<'GET /owners/hub_inventory/'>
  bins: Answer<'GET /owners/hubs/bins'>
  operations: Answer<'GET /owners/operations'>['data']
  alarms: Answer<'GET /owners/alarms'>['data']
}

export async function readHub(id: number): Promise<HubView> {
  const query = { hub_id: id }
  const sells = can('inventory:read', id)
  const [info, fleet, health, bins, doors, layout, facings, products, operations, alarms] = await Promise.all(
    [
      ask('GET /owners/hubs/get_hub_info/', { query }),
      ask('GET /owners/fleet', { query }),
      ask('GET /owners/hubs/get_hub_health/', { query }),
      ask('GET /owners/hubs/bins', { query }),
      ask('GET /owners/get_door_status/', { query }),
      ask('GET /owners/hubs/hub_layout/', { query }),
      sells ? ask('GET /owners/hubs/facings', { query }) : [],
      sells ? ask('GET /owners/hub_inventory/', { query }) : [],
      can('controls:read', id)
        ? all('GET /owners/operations', { query: { hub_id: id, state: 'unknown', limit: 100 } })
        : [],
      all('GET /owners/alarms', { query: { hub_id: id, limit: 100 } }),
    ],
  )
  return {
    id,
    info,
    fleet: fleet.data[0]!,
    health,
    doors: doors.door_status,
    layout: layout.layout,
    facings,
    products,
    bins,
    operations,
    alarms,
  }
}

const doorOf = ({ door, status }: HubView['doors'][number]): PictureDoor => ({
  id: door,
  open: status === 'unknown' ? null : status === 'open',
  locked: status === 'locked' ? true : status === 'unlocked' ? false : null,
  trouble: null,
})

/** The picture of a hub, as its last reports describe it. */
export function pictureOf(hub: HubView): HubPicture {
  const { health, doors, bins, alarms } = hub
  const main = doors.find(({ door }) => door === 'main')
  const troubleOf = (subject: string): string | null =>
    alarms.find((alarm) => alarm.subject === subject)?.message ?? null
  return {
    bins: health.bins.map((bin) => {
      const status = bins.find(({ bin_number }) => bin_number === bin.bin_number)
      return {
        id: `bin-${bin.bin_number}`,
        number: bin.bin_number,
        door: status?.door ?? 'unknown',
        lift: status?.lift ?? 'unknown',
        units: null,
        occupied: bin.occupied,
        note: noteOf(bin),
        trouble:
          bin.status === 'healthy' || bin.status === 'maintenance'
            ? troubleOf(`bin ${bin.bin_number}`)
            : (troubleOf(`bin ${bin.bin_number}`) ?? bin.status),
      }
    }),
    cabinets: Object.entries(hub.layout).map(([cabinet, { shelves }]) => ({
      id: `cabinet-${cabinet}`,
      number: Number(cabinet),
      shelves: shelves.map(({ shelf_number: shelf, total_rows: rows }) => ({
        shelf,
        rows: Array.from({ length: rows }, (_, index) => rowOf(hub, Number(cabinet), shelf, index + 1)),
      })),
      trouble: troubleOf(`cabinet ${cabinet}`),
    })),
    fridges: health.fridges.map(({ fridge_number: number, temperature, status }) => ({
      id: `fridge-${number}`,
      number,
      celsius: temperature,
      trouble:
        troubleOf(`fridge ${number}`) ?? (status === 'healthy' || status === 'maintenance' ? null : status),
      doors: doors.filter(({ door }) => door.startsWith(`fridge_${number}_`)).map(doorOf),
    })),
    main: main ? doorOf(main) : null,
    controllers: [],
  }
}

function noteOf({ order_id, reserved_for_order, enabled }: HubView['health']['bins'][number]): string | null {
  if (order_id !== null) return `order ${order_id}`
  if (reserved_for_order !== null) return `for order ${reserved_for_order}`
  return enabled ? null : 'disabled'
}

/** A row of the picture. Without the right to read the stock its units are unknown. */
function rowOf({ facings, products, id }: HubView, cabinet: number, shelf: number, row: number): PictureRow {
  const facing = facings.find((one) => one.cabinet === cabinet && one.shelf === shelf && one.row === row)
  const product = products.find((one) => one.id === facing?.product_id)
  return {
    shelf,
    row,
    units: facing?.quantity ?? (can('inventory:read', id) ? 0 : null),
    depth: facing?.capacity ?? null,
    product: product?.name ?? (facing?.product_id ? `product ${facing.product_id}` : null),
    blocked: facing?.blocked ? (facing.blocked_reason ?? 'blocked') : null,
  }
}
