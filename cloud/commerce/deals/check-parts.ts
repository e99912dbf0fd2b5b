import type { NewReward, NewTrigger } from '../../../protocol/contract/deal-objects.ts'
import type { ValidationItem } from '../../../protocol/contract/errors.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'

export type Place = readonly (string | number)[]

/** A part of a deal with where it stood in the request. */
export interface Placed<T> {
  part: T
  loc: Place
}

/**
 * Triggers with their categories found, by id or by name. Products and categories must be the hub's: whatever is not is
 * `validation_error` where it stood.
 */
export async function checkParts(
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
  if (items.length > 0) throw new ApiError('validation_error', undefined, undefined, items)
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
