import { z } from 'zod'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { nameText } from '../../../protocol/model/name-text.ts'
import { importProducts, ProductFile } from '../../commerce/catalogue/import-products.ts'
import { countStock } from '../../commerce/catalogue/shelf-stock.ts'
import { readDesired } from '../../gateway/desired-state.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { HubSelection } from '../../platform/credentials/api-keys.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { externalPayments } from '../../platform/store/tables/hubs.ts'
import { setDesired } from '../controls/configuration.ts'
import { createHub, NewHub } from '../hubs/create-hub.ts'
import { storeDesired } from '../hubs/desired.ts'

/**
 * An owner and its hubs in a file, to create them in another cell: what the hubs are and sell. The books stay where they are.
 * The file has no secrets but the digests of PINs.
 */

const Row = z.strictObject({
  cabinet: z.int(),
  shelf: z.int(),
  row: z.int(),
  upc: z.string(),
  quantity: z.int().min(0),
})

const HubEntry = z.strictObject({
  /** Its number in the former cell. */
  hub_id: z.int().min(1),
  record: NewHub,
  external_payments: z.enum(externalPayments),
  disabled_bins: z.array(z.int()),
  disabled_fridges: z.array(z.int()),
  settings: z.record(z.string(), z.string()),
  hardware: HardwareDescription,
  people: z.array(z.strictObject({ name: z.string(), pin_digest: z.string() })),
  products: z.union([ProductFile, z.tuple([])]),
  /** Counted units of each row. */
  stock: z.array(Row),
})

export const OwnerFile = z.strictObject({
  owner: nameText(200),
  exported_at: z.iso.datetime(),
  hubs: z.array(HubEntry).min(1).max(1000),
})
/** As the file has it, and as an import reads it. */
type ExportedOwner = z.input<typeof OwnerFile>
type ExportedHub = ExportedOwner['hubs'][number]
export type OwnerFile = z.infer<typeof OwnerFile>
type HubEntry = OwnerFile['hubs'][number]

/** Reads an owner's hubs that are in service. Throws if there is none, or if one has no hardware description. */
export async function exportOwner(
  q: Queries,
  { id, name }: { id: number; name: string },
  { hubs: chosen, now }: { hubs: HubSelection; now: number },
): Promise<ExportedOwner> {
  const all = await q
    .selectFrom('hubs')
    .selectAll()
    .where('owner_id', '=', id)
    .where('retired_at', 'is', null)
    .orderBy('id')
    .execute()
  const hubs = all.filter((hub) => chosen === '*' || chosen.includes(hub.id))
  if (hubs.length === 0) throw new Error(`owner ${id} has no such hub in service`)
  const entries: ExportedHub[] = []
  for (const hub of hubs) {
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
    entries.push({
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
      disabled_bins: JSON.parse(hub.disabled_bins) as number[],
      disabled_fridges: JSON.parse(hub.disabled_fridges) as number[],
      settings,
      hardware: HardwareDescription.parse(hardware),
      people,
      ...(await goodsOf(q, hub.id)),
    })
  }
  return { owner: name, exported_at: new Date(now).toISOString(), hubs: entries }
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
    .selectAll()
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

/** A hub that an import has created. */
export interface ImportedHub {
  formerId: number
  hubId: number
  products: number
}

/**
 * Creates the hubs of a file for an owner, each in transactions of its own: an import of a large owner must not hold the database.
 * A hub that exists already (same owner, same name) is refused before anything is created.
 */
export async function importOwner(
  context: CloudContext,
  ownerId: number,
  { hubs }: OwnerFile,
  actor: string,
): Promise<ImportedHub[]> {
  const known = await context.db.kysely
    .selectFrom('hubs')
    .select(['id', 'name'])
    .where('owner_id', '=', ownerId)
    .where('retired_at', 'is', null)
    .execute()
  const twice = hubs.flatMap(({ record }) => known.filter(({ name }) => name === record.name))
  if (twice.length > 0)
    throw new Error(
      `this owner has such hubs already: ${twice.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ')}`,
    )
  const imported: ImportedHub[] = []
  for (const entry of hubs) imported.push(await importHub(context, ownerId, entry, actor))
  return imported
}

async function importHub(
  context: CloudContext,
  ownerId: number,
  entry: HubEntry,
  actor: string,
): Promise<ImportedHub> {
  const { db, runtime } = context
  const hubId = await db.transact(async (tx) => {
    const { hubId: id } = await createHub(tx, runtime, ownerId, entry.record)
    await configure(tx, context, id, entry)
    await appendAudit(tx.q, runtime, {
      actor,
      action: 'hubs.create',
      hubId: id,
      object: `hub-${id}`,
      result: 'executed',
      detail: { owner_id: ownerId, name: entry.record.name, former_hub: entry.hub_id },
    })
    return id
  })
  if (entry.products.length > 0) await importProducts(context, hubId, entry.products, actor)
  await db.transact((tx) => importStock(tx, context, hubId, entry))
  return { formerId: entry.hub_id, hubId, products: entry.products.length }
}

async function configure(tx: Tx, context: CloudContext, hubId: number, entry: HubEntry): Promise<void> {
  const { hardware, settings, people, external_payments, disabled_bins, disabled_fridges } = entry
  await tx.q.updateTable('hubs').set({ external_payments }).where('id', '=', hubId).execute()
  await storeDesired(tx, hubId, { settings, hardware: { ...hardware, hubId } })
  const created_at = context.runtime.clock.now()
  for (const person of people)
    await tx.q
      .insertInto('hub_people')
      .values({ hub_id: hubId, ...person, created_at })
      .execute()
  const disabled = { disabledBins: disabled_bins, disabledFridges: disabled_fridges }
  await setDesired(tx, context, { hubId, change: (before) => ({ ...before, ...disabled }) })
}

async function importStock(tx: Tx, context: CloudContext, hubId: number, { stock }: HubEntry): Promise<void> {
  const rows = await tx.q.selectFrom('products').select(['id', 'upc']).where('hub_id', '=', hubId).execute()
  const ids = new Map(rows.map(({ id, upc }) => [upc, id]))
  for (const { cabinet, shelf, row, upc, quantity } of stock)
    await countStock(tx, context, {
      hubId,
      productId: ids.get(upc)!,
      location: { cabinet, shelf, row },
      quantity,
    })
}
