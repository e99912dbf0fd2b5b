import type { HandlerInput, Handlers } from '../../platform/http/handler.ts'
import { reply } from '../../platform/http/handler.ts'
import type { Routes } from '../../../protocol/contract/routes.ts'
import type { CloudContext } from '../../platform/context.ts'
import { withImage } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { readProduct, searchProducts } from './products.ts'

type ListInput = HandlerInput<Routes['consumer.products.list']>

/** C §4.7. */
export const productHandlers = (
  { db }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<'consumer.products.list' | 'consumer.products.get'> => ({
  async 'consumer.products.list'({ params, query, url }) {
    const { products, total } = await searchProducts(db.kysely, {
      hubId: params.hub_id,
      categoryId: query.category_id,
      subcategoryId: query.subcategory_id,
      name: query.product_name,
      page: query.page,
      size: query.size,
    })
    const links = pageLinks(url, query, total)
    const shown = products.map((product) => withImage(addressOf, product))
    return reply(shown, {
      headers: { 'X-Total-Count': String(total), ...(links === '' ? {} : { Link: links }) },
    })
  },
  'consumer.products.get': async ({ params }) =>
    withImage(addressOf, await readProduct(db.kysely, params.hub_id, params.product_id)),
})

/** RFC 8288: where the first, previous, next and last page are. */
function pageLinks(url: URL, { page, size }: ListInput['query'], total: number): string {
  const last = Math.max(1, Math.ceil(total / size))
  const pages: [string, number][] = [['first', 1]]
  if (page > 1) pages.push(['prev', Math.min(page - 1, last)])
  if (page < last) pages.push(['next', page + 1])
  pages.push(['last', last])
  return pages
    .map(([rel, number]) => {
      const target = new URL(url)
      target.searchParams.set('page', String(number))
      target.searchParams.set('size', String(size))
      return `<${target.pathname}${target.search}>; rel="${rel}"`
    })
    .join(', ')
}
