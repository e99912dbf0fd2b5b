import { rowOfSubject, subjectWithProduct } from '../../../protocol/model/subject.ts'
import type { Queries } from '../../platform/store/database.ts'

/** A subject for people: a row with its product (`row 1/2/3 (Cola)`), a product by its name. */
export async function subjectName(q: Queries, hubId: number, subject: string): Promise<string> {
  const location = rowOfSubject(subject)
  const productId = /^product (\d+)$/.exec(subject)?.[1]
  if (location === undefined && productId === undefined) return subject
  let query = q.selectFrom('products').select('products.name').where('products.hub_id', '=', hubId)
  query =
    location !== undefined
      ? query
          .innerJoin('facings', 'facings.product_id', 'products.id')
          .where('facings.hub_id', '=', hubId)
          .where('facings.cabinet', '=', location.cabinet)
          .where('facings.shelf', '=', location.shelf)
          .where('facings.row', '=', location.row)
      : query.where('products.id', '=', Number(productId))
  const product = await query.executeTakeFirst()
  return product ? subjectWithProduct(subject, product.name) : subject
}
