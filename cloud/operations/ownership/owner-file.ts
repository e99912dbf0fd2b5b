import { z } from 'zod'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { Location } from '../../../protocol/model/location.ts'
import { nameText } from '../../../protocol/model/name-text.ts'
import { UpcText } from '../../../protocol/model/upc.ts'
import { PersonAtHub } from '../../../protocol/mqtt/cloud-entries.ts'
import { importProducts, ProductFile } from '../../commerce/catalogue/import-products.ts'
import { countStock } from '../../commerce/catalogue/shelf-stock.ts'
import { shownUnits } from '../../commerce/catalogue/units.ts'
import { readDesired } from '../../gateway/desired-state.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { HubSelection } from '../../platform/credentials/api-keys.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { externalPayments } from '../../platform/store/tables/hubs.ts'
import { setDesired } from '../controls/configuration.ts'
import { createHub, NewHub } from '../hubs/create-hub.ts'
import { storeDesired } from '../hubs/desired.ts'
import { reasonToStay } from './next-cell.ts'

/**
 * An owner and its hubs in a file, to create them in another cell: what the hubs are and sell. The books stay where they are.
 * The file has no secrets but the digests of PINs.
 */

const Row = Location.extend({ upc: UpcText, quantity: z.int().min(0).max(1_000_000) })
const Numbers = z.array(z.int()).max(100)

const HubEntry = z.strictObject({
  /** Its number in the former cell. */
  hub_id: z.int().min(1),
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

/** Maximum size of a file, bytes. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024

export const OwnerFile = z.strictObject({
  owner: nameText(200),
  /** All prices are in it. */
  currency: z.string().regex(/^[A-Z]{3}$/),
  exported_at: z.iso.datetime(),
  hubs: z.array(HubEntry).min(1).max(1000),
})
/** As the file has it, and as an import reads it. */
type ExportedOwner = z.input<typeof OwnerFile>
type ExportedHub = ExportedOwner['hubs'][number]
export type OwnerFile = z.infer<typeof OwnerFile>
type HubEntry = OwnerFile['hubs'][number]

/** Reads an owner's hubs in service. Throws a sentence if there is none, or if one still sells or has no hardware description. */
export async function exportOwner(
  tx: Tx,
  { id, name }: { id: number; name: string },
  { hubs: chosen, currency, now }: { hubs: HubSelection; currency: string; now: number },
): Promise<ExportedOwner> {
  const { q } = tx
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
    const why = await reasonToStay(tx, hub.id)
    if (why !== undefined) throw new Error(why)
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
      accepting_orders: hub.accepting_orders === 1,
      disabled_bins: JSON.parse(hub.disabled_bins) as number[],
      disabled_fridges: JSON.parse(hub.disabled_fridges) as number[],
      // The broker of the former cell.
      settings: Object.fromEntries(Object.entries(settings).filter(([name]) => name !== 'MQTT_URL')),
      hardware: HardwareDescription.parse(hardware),
      people,
      ...(await goodsOf(q, hub.id)),
    })
  }
  return { owner: name, currency, exported_at: new Date(now).toISOString(), hubs: entries }
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

/** A hub that an import has created. */
export interface ImportedHub {
  formerId: number
  hubId: number
  products: number
  /** Its board is here already. */
  isEnrolled: boolean
}

export interface ImportOptions {
  /** The owner that gets the hubs; absent: a new one. */
  ownerId?: number | undefined
  actor: string
  createOwner: (tx: Tx) => Promise<number>
}

/**
 * Creates the hubs of a file, each in transactions of its own: an import of a large owner must not hold the database. An
 * interrupted import continues when it is repeated: it recognises its hubs by their former numbers, and changes no finished one.
 */
export async function importOwner(
  context: CloudContext,
  file: OwnerFile,
  options: ImportOptions,
): Promise<{ ownerId: number; hubs: ImportedHub[] }> {
  const { currency } = context.settings
  if (file.currency !== currency)
    throw new Error(
      `the prices of the file are in ${file.currency}, and this installation sells in ${currency}`,
    )
  const q = context.db.kysely
  let ownerId = await ownerToUse(q, file, options.ownerId)
  if (ownerId !== undefined) await requireNewNames(q, ownerId, file)
  const hubs: ImportedHub[] = []
  for (const entry of file.hubs) {
    const made = await context.db.transact(async (tx) => {
      const owner = ownerId ?? (await options.createOwner(tx))
      const known = await importedHub(tx.q, entry.hub_id)
      return { owner, hubId: known?.hub_id ?? (await create(tx, context, owner, entry, options)) }
    })
    const { hubId } = made
    ownerId = made.owner
    await complete(context, hubId, entry, options.actor)
    const isEnrolled = await q
      .selectFrom('hub_certificates')
      .select('serial')
      .where('hub_id', '=', hubId)
      .executeTakeFirst()
    const products = entry.products.length
    hubs.push({ formerId: entry.hub_id, hubId, products, isEnrolled: isEnrolled !== undefined })
  }
  return { ownerId: ownerId!, hubs }
}

/** The hub of an earlier run. */
const importedHub = (q: Queries, formerId: number) =>
  q
    .selectFrom('imported_hubs')
    .innerJoin('hubs', 'hubs.id', 'imported_hubs.hub_id')
    .select(['imported_hubs.hub_id', 'imported_hubs.imported_at', 'hubs.owner_id'])
    .where('former_id', '=', formerId)
    .where('retired_at', 'is', null)
    .executeTakeFirst()

/** The owner that gets the hubs; undefined: a new one. Throws a sentence if it is not certain that an owner is the same. */
async function ownerToUse(q: Queries, file: OwnerFile, given?: number): Promise<number | undefined> {
  const earlier = await Promise.all(file.hubs.map(({ hub_id }) => importedHub(q, hub_id)))
  const owners = [...new Set(earlier.flatMap((hub) => (hub ? [hub.owner_id] : [])))]
  const [owner] = owners
  if (owners.length > 1 || (owner !== undefined && given !== undefined && owner !== given))
    throw new Error(`hubs of the file are here already, and belong to owner ${owners.join(' and ')}`)
  if (owner !== undefined || given !== undefined) return owner ?? given
  const known = await q.selectFrom('owners').select('id').where('name', '=', file.owner).executeTakeFirst()
  if (known)
    throw new Error(
      `owner ${known.id} has the name ${JSON.stringify(file.owner)} here: add --owner ${known.id} if it is the same owner`,
    )
  return undefined
}

async function requireNewNames(q: Queries, ownerId: number, { hubs }: OwnerFile): Promise<void> {
  const known = await q
    .selectFrom('hubs')
    .leftJoin('imported_hubs', 'imported_hubs.hub_id', 'hubs.id')
    .select(['hubs.id', 'hubs.name', 'imported_hubs.former_id'])
    .where('hubs.owner_id', '=', ownerId)
    .where('hubs.retired_at', 'is', null)
    .execute()
  const twice = hubs.flatMap(({ hub_id, record }) =>
    known.filter(({ name, former_id }) => name === record.name && former_id !== hub_id),
  )
  if (twice.length > 0)
    throw new Error(
      `this owner has such hubs already: ${twice.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ')}`,
    )
}

async function create(
  tx: Tx,
  context: CloudContext,
  ownerId: number,
  entry: HubEntry,
  { actor }: ImportOptions,
): Promise<number> {
  const { runtime } = context
  const { hubId } = await createHub(tx, runtime, ownerId, entry.record)
  const former_id = entry.hub_id
  await tx.q.insertInto('imported_hubs').values({ hub_id: hubId, former_id, imported_at: null }).execute()
  await configure(tx, context, hubId, entry)
  await appendAudit(tx.q, runtime, {
    actor,
    action: 'hubs.create',
    hubId,
    object: `hub-${hubId}`,
    result: 'executed',
    detail: { owner_id: ownerId, name: entry.record.name, former_hub: former_id },
  })
  return hubId
}

/** Imports products and counted units, unless an earlier run has done it. */
async function complete(context: CloudContext, hubId: number, entry: HubEntry, actor: string): Promise<void> {
  const { db, runtime } = context
  if ((await importedHub(db.kysely, entry.hub_id))?.imported_at != null) return
  if (entry.products.length > 0) await importProducts(context, hubId, entry.products, actor)
  await db.transact(async (tx) => {
    await importStock(tx, context, hubId, entry)
    const imported_at = runtime.clock.now()
    await tx.q.updateTable('imported_hubs').set({ imported_at }).where('hub_id', '=', hubId).execute()
  })
}

async function configure(tx: Tx, context: CloudContext, hubId: number, entry: HubEntry): Promise<void> {
  const { hardware, settings, people, external_payments } = entry
  await tx.q.updateTable('hubs').set({ external_payments }).where('id', '=', hubId).execute()
  await storeDesired(tx, hubId, { settings, hardware: { ...hardware, hubId } })
  const created_at = context.runtime.clock.now()
  for (const person of people)
    await tx.q
      .insertInto('hub_people')
      .values({ hub_id: hubId, ...person, created_at })
      .execute()
  const wanted = {
    acceptingOrders: entry.accepting_orders,
    disabledBins: entry.disabled_bins,
    disabledFridges: entry.disabled_fridges,
  }
  await setDesired(tx, context, { hubId, change: (before) => ({ ...before, ...wanted }) })
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
