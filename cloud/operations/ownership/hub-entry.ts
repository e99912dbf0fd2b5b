import { createHash } from 'node:crypto'
import { z } from 'zod'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { Location, locationKey } from '../../../protocol/model/location.ts'
import { UpcText } from '../../../protocol/model/upc.ts'
import { PersonAtHub } from '../../../protocol/mqtt/cloud-entries.ts'
import { ProductFile } from '../../commerce/catalogue/import-products.ts'
import { shownUnits } from '../../commerce/catalogue/units.ts'
import { readDesired } from '../../gateway/desired-state.ts'
import type { Queries } from '../../platform/store/database.ts'
import { externalPayments } from '../../platform/store/tables/hubs.ts'
import { NewHub } from '../hubs/create-hub.ts'

/** A hub in the file of an owner (`owner-file.ts`). */

const Row = Location.extend({ upc: UpcText, quantity: z.int().min(0).max(1_000_000) })
/** A digest of an export (`digestOfEntry`). */
export const Digest = z.string().regex(/^[0-9a-f]{64}$/)
const Numbers = z.array(z.int()).max(100)

export const HubEntry = z
  .strictObject({
    /** Its number in the former cell. */
    hub_id: z.int().min(1),
    /** Names this export: `hubs send` refuses another one. */
    digest: Digest,
    record: NewHub,
    external_payments: z.enum(externalPayments),
    accepting_orders: z.boolean(),
    disabled_bins: Numbers,
    disabled_fridges: Numbers,
    settings: z
      .record(z.string().max(100), z.string().max(10_000))
      .refine((each) => Object.keys(each).length <= 200),
    hardware: HardwareDescription,
    people: z.array(PersonAtHub).max(1000),
    products: z.union([ProductFile, z.tuple([])]),
    /** Counted units of each row. */
    stock: z.array(Row).max(5000),
  })
  .superRefine(({ products, stock }, ctx) => {
    const upcs = new Map(products.flatMap(({ upc, facings }) => facings.map((at) => [locationKey(at), upc])))
    for (const [index, { upc, ...at }] of stock.entries()) {
      const place = locationKey(at)
      if (upcs.get(place) !== upc)
        ctx.addIssue({
          code: 'custom',
          path: ['stock', index],
          message: `the products of the file have no UPC ${upc} in row ${place}`,
        })
      upcs.delete(place)
    }
  })

/** As the file has it, and as an import reads it. */
export type ExportedHub = z.input<typeof HubEntry>
type ReadHub = Omit<ExportedHub, 'digest'>
export type HubEntry = z.infer<typeof HubEntry>

/** Changes with each part of an entry. */
export const digestOfEntry = (entry: ReadHub | HubEntry): string =>
  createHash('sha256').update(JSON.stringify(entry)).digest('hex')

/** Reads a hub. Throws a sentence if it has no hardware description. */
export async function readEntry(q: Queries, hubId: number): Promise<ReadHub> {
  const hub = await q.selectFrom('hubs').selectAll().where('id', '=', hubId).executeTakeFirstOrThrow()
  const { settings, hardware } = await readDesired(q, hub.id)
  if (hardware === null)
    throw new Error(
      `hub ${hub.id} has no hardware description here: larder hubs set ${hub.id} --hardware FILE`,
    )
  const people = await q
    .selectFrom('hub_people')
    .select(['name', 'pin_digest'])
    .where('hub_id', '=', hub.id)
    .orderBy('name')
    .execute()
  return {
    hub_id: hub.id,
    record: {
      name: hub.name,
      street: hub.street_address_1,
      street2: hub.street_address_2,
      city: hub.city,
      state: hub.state,
      postalCode: hub.postal_code,
      longitude: degrees(hub.longitude),
      latitude: degrees(hub.latitude),
      timezone: hub.timezone,
      tax: String(hub.tax_millipercent / 1000),
    },
    external_payments: hub.external_payments,
    accepting_orders: hub.accepting_orders === 1,
    disabled_bins: JSON.parse(hub.disabled_bins) as number[],
    disabled_fridges: JSON.parse(hub.disabled_fridges) as number[],
    // The broker of the former cell.
    settings: Object.fromEntries(Object.entries(settings).filter(([name]) => name !== 'MQTT_URL')),
    hardware: HardwareDescription.parse(hardware),
    people,
    ...(await goodsOf(q, hub.id)),
  }
}

/** Without an exponent. */
const degrees = (angle: number): string => (Math.abs(angle) < 1e-6 ? '0' : String(angle))

async function goodsOf(q: Queries, hubId: number): Promise<Pick<ExportedHub, 'products' | 'stock'>> {
  const rows = await q
    .selectFrom('products as p')
    .innerJoin('categories as c', 'c.id', 'p.category_id')
    .leftJoin('categories as s', 's.id', 'p.subcategory_id')
    .selectAll('p')
    .select(['c.name as category', 's.name as subcategory'])
    .where('p.hub_id', '=', hubId)
    .orderBy('p.id')
    .execute()
  const facings = await q
    .selectFrom('facings')
    .select(['cabinet', 'shelf', 'row', 'product_id', shownUnits.as('quantity')])
    .where('hub_id', '=', hubId)
    .orderBy('is_primary', 'desc')
    .orderBy('cabinet')
    .orderBy('shelf')
    .orderBy('row')
    .execute()
  const upcs = new Map(rows.map(({ id, upc }) => [id, upc]))
  return {
    products: rows
      .map((row) => ({ row, places: facings.filter(({ product_id }) => product_id === row.id) }))
      .map(({ row, places }) => ({
        upc: row.upc,
        name: row.name,
        description: row.description,
        category: row.category,
        subcategory: row.subcategory,
        price: row.original_price,
        purchase_price: row.purchase_price,
        markdown_percent: row.markdown_percent,
        // A picture of the cell's own store has no such address.
        image_url: row.image_url.startsWith('https://') ? row.image_url : '',
        // A product without a place is not sold.
        is_active: row.is_active === 1 && places.length > 0,
        facings: places.map(({ cabinet, shelf, row: at }) => ({ cabinet, shelf, row: at })),
      })),
    stock: facings.map(({ cabinet, shelf, row, product_id, quantity }) => ({
      cabinet,
      shelf,
      row,
      upc: upcs.get(product_id)!,
      quantity: Math.max(0, quantity),
    })),
  }
}
