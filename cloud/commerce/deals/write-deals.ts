import type { z } from 'zod'
import type {
  DealUpdate,
  NewConstraint,
  NewDeal,
  NewReward,
  NewTrigger,
} from '../../../protocol/contract/deal-objects.ts'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import { ApiError } from '../../platform/api-error.ts'
import { localDay } from '../../platform/calendar/zone.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { readTerms } from '../../../protocol/model/deal-terms.ts'
import { type DealRow, findDeal, rewardOf, toEngine, triggerOf, type StoredDeal } from './deal-rows.ts'
import { needOf } from './engine/deal.ts'
import { neverApplies, type Never } from './engine/judge-deal.ts'

/** Maximum of deals of one hub that are not deleted, because its owner's list shows all of them. */
const MOST_DEALS = 2000
/** Maximum of active deals of one hub that are not over, because each cart is compared with all of them. */
const MOST_ACTIVE = 200

type DealFields = Omit<NewDeal, 'triggers' | 'rewards' | 'constraints'>

interface DealToCreate {
  fields: DealFields
  triggers: readonly Placed<NewTrigger>[]
  rewards: readonly Placed<NewReward>[]
  constraints: readonly NewConstraint[]
  /** The place of the constraints in the request, for errors. */
  constraintsLoc: Place
  /** The key in the media store. */
  imageKey: string | null
  actor: string
}

/** The deal of a JSON body. */
export const dealOf = (
  { triggers, rewards, constraints, ...fields }: NewDeal,
  actor: string,
): DealToCreate => ({
  fields,
  triggers: triggers.map((part, index) => ({ part, loc: ['body', 'triggers', index] })),
  rewards: rewards.map((part, index) => ({ part, loc: ['body', 'rewards', index] })),
  constraints,
  constraintsLoc: ['body', 'constraints'],
  imageKey: null,
  actor,
})

/** Creates a deal at a hub that the caller may access. Throws `validation_error`. */
export const createDeal = (
  { db, runtime }: CloudContext,
  media: Pick<Media, 'keep'>,
  deal: DealToCreate,
): Promise<StoredDeal> =>
  db.transact(async (tx) => {
    if (deal.imageKey !== null) await media.keep(tx, [deal.imageKey])
    return insertDeal(tx, runtime, deal)
  })

/** Checks and stores a new deal. Throws `validation_error`. */
export async function insertDeal(
  tx: Tx,
  runtime: Runtime,
  { fields, rewards, constraints, constraintsLoc, imageKey, actor, ...given }: DealToCreate,
): Promise<StoredDeal> {
  const triggers = await checkParts(tx.q, fields.hub_id, given.triggers, rewards)
  const parts = { triggers: triggers.map(triggerOf), rewards: rewards.map(({ part }) => rewardOf(part)) }
  const never = neverApplies({
    ...parts,
    terms: readTerms(constraints),
    start: fields.start,
    end: fields.end,
  })
  if (never)
    throw refuseNever(never, never.part === 'WEEKDAYS' ? constraintsLoc : rewards[never.part.reward]!.loc)
  const now = runtime.clock.now()
  const today = await lockDealsOf(tx, fields.hub_id, now)
  await requireRoom(tx, fields.hub_id)
  if (fields.is_deal_active && !isOver(fields.end, today))
    await requireActiveRoom(tx, { hubId: fields.hub_id, today, field: 'hub_id', input: fields.hub_id })
  const { id } = await tx.q
    .insertInto('deals')
    .values({
      hub_id: fields.hub_id,
      name: fields.name,
      description: fields.description,
      display_text: fields.display_text,
      image_key: imageKey,
      priority: fields.priority,
      is_active: fields.is_deal_active ? 1 : 0,
      need: needOf(parts),
      start_day: fields.start,
      end_day: fields.end,
      created_at: now,
      updated_at: now,
      deleted_at: null,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  for (const { type, quantity, category_id, product_id } of triggers)
    await tx.q
      .insertInto('deal_triggers')
      .values({ deal_id: id, type, quantity, category_id, product_id })
      .execute()
  for (const { part } of rewards)
    await tx.q
      .insertInto('deal_rewards')
      .values({ deal_id: id, ...part })
      .execute()
  for (const constraint of constraints)
    await tx.q
      .insertInto('deal_constraints')
      .values({ deal_id: id, ...constraint })
      .execute()
  await audit(tx, runtime, { actor, action: 'deals.create', hubId: fields.hub_id, id })
  return (await findDeal(tx.q, id))!
}

async function requireRoom(tx: Tx, hubId: number): Promise<void> {
  const { count } = await tx.q
    .selectFrom('deals')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', hubId)
    .where('deleted_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (count >= MOST_DEALS) throw invalid('hub_id', `a hub has at most ${MOST_DEALS} deals`, hubId)
}

/** Until the end of the transaction no other deal of the hub is created or activated. Returns the hub's day. */
async function lockDealsOf(tx: Tx, hubId: number, now: number): Promise<string> {
  const hub = tx.q.selectFrom('hubs').select('timezone').where('id', '=', hubId)
  return localDay((await tx.forUpdate(hub).executeTakeFirstOrThrow()).timezone, now)
}

const isOver = (end: string | null, today: string): boolean => end !== null && end < today

interface Activated {
  hubId: number
  today: string
  /** The field of the request that activates a deal, for the error. */
  field: string
  input: unknown
}

async function requireActiveRoom(tx: Tx, { hubId, today, field, input }: Activated): Promise<void> {
  const { count } = await tx.q
    .selectFrom('deals')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', hubId)
    .where('deleted_at', 'is', null)
    .where('is_active', '=', 1)
    .where((eb) => eb.or([eb('end_day', 'is', null), eb('end_day', '>=', today)]))
    .executeTakeFirstOrThrow()
  if (count >= MOST_ACTIVE)
    throw invalid(field, `a hub has at most ${MOST_ACTIVE} active deals that are not over`, input)
}

const refuseNever = ({ message }: Never, loc: Place): ApiError =>
  ApiError.invalid({
    loc: [...loc],
    msg: `Value error, the deal can never apply: ${message}`,
    type: 'value_error',
  })

const invalid = (field: string, msg: string, input: unknown): ApiError =>
  ApiError.invalid({ loc: ['body', field], msg: `Value error, ${msg}`, type: 'value_error', input })

/** Changes a deal that the caller may access. Throws `deal_not_found` or `validation_error`. */
export function updateDeal(
  { db, runtime }: CloudContext,
  dealId: number,
  { name, is_deal_active: isActive, start, end }: z.output<typeof DealUpdate>,
  actor: string,
): Promise<StoredDeal> {
  return db.transact(async (tx) => {
    const { hub_id: hubId } = await readDeal(tx.q, dealId)
    const now = runtime.clock.now()
    const today = await lockDealsOf(tx, hubId, now)
    const row = await lockDeal(tx, dealId)
    const changes = {
      name: name ?? row.name,
      is_active: isActive === undefined ? row.is_active : isActive ? (1 as const) : (0 as const),
      start_day: start === undefined ? row.start_day : start,
      end_day: end === undefined ? row.end_day : end,
      updated_at: now,
    }
    const { start_day: first, end_day: last } = changes
    if (first !== null && last !== null && first > last)
      throw end == null
        ? invalid('start', `the start is after the end, ${last}`, start)
        : invalid('end', `the end is before the start, ${first}`, end)
    const stored = toEngine((await findDeal(tx.q, dealId))!)
    const never = neverApplies({ ...stored, start: first, end: last })
    // Older deals that can never apply may exist: they can still be disabled and renamed.
    if (never?.part === 'WEEKDAYS' && (start !== undefined || end !== undefined))
      throw refuseNever(never, ['body', end === undefined ? 'start' : 'end'])
    const isOpen = (deal: Pick<DealRow, 'is_active' | 'end_day'>): boolean =>
      deal.is_active === 1 && !isOver(deal.end_day, today)
    if (isOpen(changes) && !isOpen(row)) {
      const activated =
        row.is_active === 1 ? { field: 'end', input: end } : { field: 'is_deal_active', input: isActive }
      await requireActiveRoom(tx, { hubId, today, ...activated })
    }
    await tx.q.updateTable('deals').set(changes).where('id', '=', dealId).execute()
    const detail = { name, is_deal_active: isActive, start, end }
    await audit(tx, runtime, { actor, action: 'deals.update', hubId, id: dealId, detail })
    return (await findDeal(tx.q, dealId))!
  })
}

/** Deletes a deal that the caller may access, but not its redemptions. Throws `deal_not_found`. */
export function deleteDeal(
  { db, runtime }: CloudContext,
  media: Pick<Media, 'remove'>,
  dealId: number,
  actor: string,
): Promise<void> {
  return db.transact(async (tx) => {
    const row = await lockDeal(tx, dealId)
    for (const table of ['deal_triggers', 'deal_rewards', 'deal_constraints'] as const)
      await tx.q.deleteFrom(table).where('deal_id', '=', dealId).execute()
    const now = runtime.clock.now()
    await tx.q
      .updateTable('deals')
      .set({ is_active: 0, image_key: null, updated_at: now, deleted_at: now })
      .where('id', '=', dealId)
      .execute()
    if (row.image_key !== null) await media.remove(tx, row.image_key)
    await audit(tx, runtime, { actor, action: 'deals.delete', hubId: row.hub_id, id: dealId })
  })
}

const dealRow = (q: Queries, dealId: number) =>
  q.selectFrom('deals').selectAll().where('id', '=', dealId).where('deleted_at', 'is', null)

async function readDeal(q: Queries, dealId: number): Promise<DealRow> {
  const row = await dealRow(q, dealId).executeTakeFirst()
  if (!row) throw new ApiError('deal_not_found')
  return row
}

async function lockDeal(tx: Tx, dealId: number): Promise<DealRow> {
  const row = await tx.forUpdate(dealRow(tx.q, dealId)).executeTakeFirst()
  if (!row) throw new ApiError('deal_not_found')
  return row
}

interface Change {
  actor: string
  action: string
  hubId: number
  id: number
  detail?: Record<string, unknown>
}

const audit = (tx: Tx, runtime: Runtime, { id, ...change }: Change): Promise<void> =>
  appendAudit(tx.q, runtime, { ...change, object: `deal-${id}`, result: 'executed' })

type Place = readonly (string | number)[]

/** A part of a deal with its place in the request. */
interface Placed<T> {
  part: T
  loc: Place
}

/**
 * Resolves the categories of triggers, by id or by name. Products and categories must belong to the hub, or else
 * `validation_error` names their place.
 */
async function checkParts(
  q: Queries,
  hubId: number,
  triggers: readonly Placed<NewTrigger>[],
  rewards: readonly Placed<NewReward>[],
): Promise<NewTrigger[]> {
  const products = await knownProducts(q, hubId, [...triggers, ...rewards])
  const categories = await categoriesOf(q, hubId)
  const items: ValidationItem[] = []
  const refuse = (loc: Place, field: string, msg: string, input: unknown): void =>
    void items.push({ loc: [...loc, field], msg: `Value error, ${msg}`, type: 'value_error', input })

  for (const { part, loc } of [...triggers, ...rewards])
    if (part.product_id !== null && !products.has(part.product_id))
      refuse(loc, 'product_id', 'the hub has no such product', part.product_id)
  const found = triggers.map(({ part, loc }) => {
    const { category, category_id: id } = part
    if (id !== null) {
      const name = categories.get(id)
      if (name === undefined) refuse(loc, 'category_id', 'the hub has no product of such a category', id)
      else if (category !== null && !isSame(category, name))
        refuse(loc, 'category', `category ${id} is '${name}'`, category)
      return part
    }
    if (category === null) return part
    const [named] = [...categories].find(([, name]) => isSame(category, name)) ?? []
    if (named === undefined) refuse(loc, 'category', 'the hub has no product of such a category', category)
    return { ...part, category_id: named ?? null }
  })
  if (items.length > 0) throw ApiError.invalid(...items)
  return found
}

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

async function knownProducts(
  q: Queries,
  hubId: number,
  parts: readonly Placed<{ product_id: number | null }>[],
): Promise<Set<number>> {
  const ids = parts.flatMap(({ part }) => part.product_id ?? [])
  if (ids.length === 0) return new Set()
  const rows = await q
    .selectFrom('products')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('id', 'in', ids)
    .where('is_active', '=', 1)
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/** Names of the categories and subcategories that products of a hub have, by id. */
async function categoriesOf(q: Queries, hubId: number): Promise<Map<number, string>> {
  const rows = await q
    .selectFrom('categories')
    .select(['id', 'name'])
    .where((eb) =>
      eb.or([
        eb('id', 'in', eb.selectFrom('products').select('category_id').where('hub_id', '=', hubId)),
        eb(
          'id',
          'in',
          eb
            .selectFrom('products')
            .select('subcategory_id')
            .where('hub_id', '=', hubId)
            .where('subcategory_id', 'is not', null),
        ),
      ]),
    )
    .orderBy('id')
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}
