import { dealHandlers } from '../../../../../cloud/commerce/deals/handlers.ts'
import { folderStore } from '../../../../../cloud/platform/media/folder-store.ts'
import { openDatabase } from '../../../../../cloud/platform/store/database.ts'
import { expect } from 'vitest'
import { openCloud, type CallAnswer } from '../../../../world/cloud.ts'
import { emptySqlite } from '../../../../world/database.ts'
import { emptyFolder } from '../../../support/media.ts'
import { openShop } from '../../../../world/shop.ts'

export const DEALS = '/api/v1/deals'

/**
 * Hub 1 with products 1 (250 cents) and 2 (199, 10 % off), both of category 1, Drinks; hub 2 belongs to
 * another owner.
 */
export async function dealsOverHttp() {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const folder = emptyFolder()
  const app = await openCloud({
    db,
    mediaStore: folderStore(folder),
    handlersOf: (context, media) => dealHandlers(context, media),
  })
  await openShop(db)
  const key = await app.key(['promotions:read', 'promotions:write'])
  const send = (method: string, path: string, body?: unknown, as = key): Promise<CallAnswer> =>
    app.call(method, `${DEALS}${path}`, { key: as, ...(body !== undefined && { body }) })
  const create = async (wish: object = {}): Promise<number> => {
    const { status, json } = await send('POST', '/', newDeal(wish))
    expect([status, json]).toEqual([200, expect.anything()])
    return (json as { id: number }).id
  }
  return { ...app, folder, send, create, owner: key }
}

export const newDeal = (wish: object = {}) => ({
  name: 'Ten percent',
  hub_id: 1,
  triggers: [{ type: 'ALWAYS' }],
  rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10 }],
  ...wish,
})
export const cart = (wish: object = {}) => ({
  hub_id: 1,
  cart_items: [
    { product_id: 1, category_id: 1, quantity: 2, unit_price: 250 },
    { product_id: 2, quantity: 1, unit_price: 179 },
  ],
  ...wish,
})
