import { z } from 'zod'
import { nameText } from '../../../protocol/model/name-text.ts'
import { importProducts } from '../../commerce/catalogue/import-products.ts'
import { countStock } from '../../commerce/catalogue/shelf-stock.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { requireNoMove } from '../../gateway/moves.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { HubSelection } from '../../platform/credentials/api-keys.ts'
import type { CloudContext } from '../../platform/context.ts'
import { isUniqueViolation, type Queries, type Tx } from '../../platform/store/database.ts'
import { setDesired } from '../controls/configuration.ts'
import { createHub } from '../hubs/create-hub.ts'
import { storeDesired } from '../hubs/desired.ts'
import { hasUndelivered, lockHub } from './hand-over.ts'
import { digestOfEntry, HubEntry, readEntry, type ExportedHub } from './hub-entry.ts'
import { reasonToStay } from './next-cell.ts'

/**
 * An owner and its hubs in a file, to create them in another cell: hubs and products. The books stay where they are.
 * The file has no secrets but the digests of PINs.
 */

/** Maximum size of a file, bytes. */
export const MAX_FILE_BYTES = 64 * 1024 * 1024

export const OwnerFile = z.strictObject({
  owner: nameText(200),
  /** All prices are in it. */
  currency: z.string().regex(/^[A-Z]{3}$/),
  exported_at: z.iso.datetime(),
  hubs: z
    .array(HubEntry)
    .min(1)
    .max(1000)
    .refine((hubs) => new Set(hubs.map(({ hub_id }) => hub_id)).size === hubs.length, 'a hub is there twice'),
})
/** As the file has it, and as an import reads it. */
type ExportedOwner = z.input<typeof OwnerFile>
export type OwnerFile = z.infer<typeof OwnerFile>

/**
 * Reads an owner's hubs in service. Throws a sentence if there is none, if one still sells, or if the cloud may not know its
 * present state.
 */
export async function exportOwner(
  tx: Tx,
  { runtime, settings }: CloudContext,
  { id, name }: { id: number; name: string },
  chosen: HubSelection,
): Promise<ExportedOwner> {
  const { q } = tx
  const { currency, onlineWithinMs } = settings
  const now = runtime.clock.now()
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
    await requireNoMove(tx, hub.id)
    const why = (await reasonToStay(tx, hub.id)) ?? (await whatIsUnknown(q, hub.id, now, onlineWithinMs))
    if (why !== undefined) throw new Error(why)
    const entry = await readEntry(q, hub.id)
    entries.push({ ...entry, digest: digestOfEntry(entry) })
  }
  return { owner: name, currency, exported_at: new Date(now).toISOString(), hubs: entries }
}

/** Why the cloud may not know the present state of a hub, as far as it knows. */
async function whatIsUnknown(
  q: Queries,
  hubId: number,
  now: number,
  onlineWithinMs: number,
): Promise<string | undefined> {
  const { connected, isStalled } = await hubState(q, hubId, now, onlineWithinMs)
  if (!connected || isStalled)
    return `hub ${hubId} is not connected, or its reports do not arrive: export it when it is online, because the cloud may not know its counts`
  return (await hasUndelivered(q, hubId))
    ? `hub ${hubId} has not received all changes yet: repeat the command in a moment`
    : undefined
}

/**
 * Stores what the file of an export contains: a hub that changes later does not move (`next-cell.ts`). Throws if a hub has an
 * order to move, because that order is of the former export.
 */
export async function noteExported(tx: Tx, { hubs }: ExportedOwner): Promise<void> {
  for (const { hub_id, digest } of hubs.toSorted((a, b) => a.hub_id - b.hub_id)) {
    await lockHub(tx, hub_id)
    await requireNoMove(tx, hub_id)
    await tx.q
      .insertInto('hub_exports')
      .values({ hub_id, digest })
      .onConflict((conflict) => conflict.column('hub_id').doUpdateSet({ digest }))
      .execute()
  }
}

/** A hub that an import has created. */
export interface ImportedHub {
  formerId: number
  hubId: number
  /** The digest of its export. */
  digest: string
  products: number
  /** A board has been enrolled as this hub. It has not moved yet if that move failed. */
  isEnrolled: boolean
  /** Its board has arrived. */
  hasMoved: boolean
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
    const made = await context.db
      .transact(async (tx) => {
        const owner = ownerId ?? (await options.createOwner(tx))
        const known = await importedHub(tx.q, entry.hub_id)
        return { owner, hubId: known?.hub_id ?? (await create(tx, context, owner, entry, options)) }
      })
      .catch((cause: unknown) => {
        if (!isUniqueViolation(cause)) throw cause
        const problem = `another command imports hub ${entry.hub_id} now: repeat this one when it has ended`
        throw new Error(problem, { cause })
      })
    const { hubId } = made
    ownerId = made.owner
    await complete(context, hubId, entry, options.actor)
    const [certificate, session] = await Promise.all(
      (['hub_certificates', 'hub_sessions'] as const).map((table) =>
        q.selectFrom(table).select('hub_id').where('hub_id', '=', hubId).executeTakeFirst(),
      ),
    )
    hubs.push({
      formerId: entry.hub_id,
      hubId,
      digest: entry.digest,
      products: entry.products.length,
      isEnrolled: certificate !== undefined,
      hasMoved: session !== undefined,
    })
  }
  return { ownerId: ownerId!, hubs }
}

/** The hub of an earlier run. */
const importedHub = (q: Queries, formerId: number) =>
  q
    .selectFrom('imported_hubs')
    .innerJoin('hubs', 'hubs.id', 'imported_hubs.hub_id')
    .select(['imported_hubs.hub_id', 'imported_hubs.imported_at', 'imported_hubs.digest', 'hubs.owner_id'])
    .where('former_id', '=', formerId)
    .executeTakeFirst()

/** The owner that gets the hubs; undefined: a new one. Throws a sentence if it is not certain that an owner is the same. */
async function ownerToUse(q: Queries, file: OwnerFile, given?: number): Promise<number | undefined> {
  const earlier = await Promise.all(file.hubs.map(({ hub_id }) => importedHub(q, hub_id)))
  for (const [index, entry] of file.hubs.entries()) {
    const hub = earlier[index]
    if (hub && hub.digest !== digestOfEntry(entry))
      throw new Error(
        `hub ${entry.hub_id} is here already as hub ${hub.hub_id}, from another export: larder hubs retire ${hub.hub_id} first, then import this file`,
      )
  }
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
  const digest = digestOfEntry(entry)
  await tx.q
    .insertInto('imported_hubs')
    .values({ hub_id: hubId, former_id, digest, imported_at: null })
    .execute()
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
    await lockHub(tx, hubId)
    if ((await importedHub(tx.q, entry.hub_id))?.imported_at != null) return
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
