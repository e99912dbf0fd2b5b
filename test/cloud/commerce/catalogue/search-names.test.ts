import { expect, test } from 'vitest'
import { searchNameWork } from '../../../../cloud/commerce/catalogue/search-names.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'

onEachDatabase('stored search texts', (open) => {
  test('search texts of an older version are rebuilt once, and equal names are merged', async () => {
    const { context } = await openShop(await open(), { products: [{ price: 100, quantity: 1 }] })
    const q = context.db.kysely
    await q.updateTable('products').set({ name: 'Lay\u2019s', search_name: 'lay\u2019s' }).execute()
    const product = await q.selectFrom('products').select(['hub_id', 'upc']).executeTakeFirstOrThrow()
    for (const search_name of ['lay\u2019s', "lay's", 'coca\u2010cola', 'water'])
      await q
        .insertInto('sold_names')
        .values({ ...product, search_name })
        .execute()

    const kind = searchNameWork(context)['catalogue.search-names']!
    const [subject] = kind.recurring!
    const work = { kind: 'catalogue.search-names', subject: subject!, attempts: 1, claim: '' }
    const { next } = await kind.run(work)
    expect(next).toBeGreaterThan(context.runtime.clock.now())
    expect(await q.selectFrom('products').select('search_name').execute()).toEqual([{ search_name: "lay's" }])
    const names = await q.selectFrom('sold_names').select('search_name').orderBy('search_name').execute()
    expect(names.map(({ search_name }) => search_name)).toEqual(['coca-cola', "lay's", 'water'])
    expect((await kind.run({ ...work, subject: 'v1' })).next).toBeNull()
  })
})
