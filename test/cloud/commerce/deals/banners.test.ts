import { expect, test } from 'vitest'
import { bannerHandlers } from '../../../../cloud/commerce/deals/banners.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import { errorOf, openCloud, type FormPart } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { emptyFolder, filesIn } from '../../support/media.ts'
import { fileOf, gif, grown, html, jpeg, mp4, png, webp } from '../../support/media-samples.ts'

const banners = '/api/v1/owners/owner/banners'
const MIB = 1024 * 1024

async function gallery(open: OpenDatabase) {
  const folder = emptyFolder()
  const app = await openCloud({
    db: await open(),
    mediaStore: folderStore(folder),
    handlersOf: (context, media) => bannerHandlers(context, media),
  })
  const owner = await app.key(['promotions:read', 'promotions:write'])
  const add = (parts: readonly FormPart[], hub = 1, key = owner) =>
    app.call('POST', `${banners}?hub_id=${hub}`, { key, form: parts })
  return { ...app, folder, owner, add }
}

const banner = (name: string, order: number, content = png): FormPart[] => [
  ['name', name],
  ['order_by', String(order)],
  ['file', fileOf(content, 'banner.bin')],
]

onEachDatabase('banners', (open) => {
  test('the name of a banner is stored in its normal form, and a blank name is refused', async () => {
    const { add } = await gallery(open)
    expect((await add(banner('  Cold \n drinks ', 1))).json).toMatchObject({ name: 'Cold drinks' })
    expect((await add(banner(' ', 1))).status).toBe(422)
  })

  test('banners are listed by position, then by age', async () => {
    const { add, call, owner, folder } = await gallery(open)
    const added = await add(banner('b', 2))
    expect([added.status, added.json]).toEqual([
      200,
      {
        id: 1,
        name: 'b',
        image_url: expect.stringMatching(
          /^http:\/\/larder\.test\/files\/banners\/[0-9a-f-]{36}\.png\?expires=\d+&signature=[\w-]{43}$/,
        ) as string,
        order_by: 2,
      },
    ])
    for (const [name, order, content] of [
      ['c', 2, jpeg],
      ['a', 0, webp],
      ['d', 10, gif],
    ] as const)
      expect((await add(banner(name, order, content))).status).toBe(200)
    const { json } = await call('GET', `${banners}?hub_id=1`, { key: owner })
    expect((json as { name: string }[]).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
    expect((json as unknown[])[1]).toEqual(added.json)
    expect(filesIn(folder)).toHaveLength(4)
  })

  test('a hub has at most a hundred banners, also with simultaneous uploads, and the image of a refused one is deleted', async () => {
    const { add, owner, call, context, folder } = await gallery(open)
    const created_at = context.runtime.clock.now()
    const rows = Array.from({ length: 98 }, (_, index) => ({
      hub_id: 1,
      name: `b${index}`,
      order_by: index,
      image_key: `banners/${index}.png`,
      created_at,
    }))
    const media = rows.map(({ image_key: key }) => ({
      key,
      state: 'kept' as const,
      mime_type: 'image/png',
      size: 0,
      sha256: '',
      created_at,
    }))
    await context.db.kysely.insertInto('media').values(media).execute()
    await context.db.kysely.insertInto('banners').values(rows).execute()
    const answers = await Promise.all([1, 2, 3, 4].map((order) => add(banner('more', order))))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 422, 422])
    const refused = errorOf(answers.find(({ status }) => status === 422)!)
    expect([refused.error.code, refused.error.message]).toEqual([
      'validation_error',
      'A hub has at most 100 banners: remove one first.',
    ])
    expect(filesIn(folder)).toHaveLength(2)
    const { json } = await call('GET', `${banners}?hub_id=1`, { key: owner })
    expect(json).toHaveLength(100)
    await call('DELETE', `${banners}/1?hub_id=1`, { key: owner })
    expect((await add(banner('again', 1))).status).toBe(200)
  })

  test('a banner belongs to one hub, and is deleted with its image', async () => {
    const { add, call, key, owner, folder, context } = await gallery(open)
    await add(banner('mine', 1))
    const other = await key(['promotions:read', 'promotions:write'], { ownerId: 2 })
    await add(banner('theirs', 1), 2, other)
    expect(filesIn(folder)).toHaveLength(2)
    const remove = async (id: number, hub: number, credential = owner) => {
      const answer = await call('DELETE', `${banners}/${id}?hub_id=${hub}`, { key: credential })
      return answer.status < 400 ? answer.status : [answer.status, errorOf(answer).error.code]
    }
    expect(await remove(2, 1)).toEqual([404, 'banner_not_found'])
    expect(await remove(2, 2)).toEqual([404, 'hub_not_found'])
    expect(await remove(1, 2, other)).toEqual([404, 'banner_not_found'])
    expect(filesIn(folder)).toHaveLength(2)
    expect(await remove(1, 1)).toBe(200)
    expect(await remove(1, 1)).toEqual([404, 'banner_not_found'])
    expect((await call('GET', `${banners}?hub_id=1`, { key: owner })).json).toEqual([])
    // The image is deleted after the commit, in the background.
    await expect.poll(() => filesIn(folder)).toHaveLength(1)
    await expect.poll(() => context.db.kysely.selectFrom('media').selectAll().execute()).toHaveLength(1)
  })

  test.each([
    ['no name', banner('', 1).slice(1), 422, 'name', 'missing'],
    ['an empty name', banner('', 1), 422, 'name', 'string_too_short'],
    ['a long name', banner('x'.repeat(201), 1), 422, 'name', 'string_too_long'],
    ['no position', [banner('a', 1)[0]!, banner('a', 1)[2]!], 422, 'order_by', 'missing'],
    ['a position that is not an integer', banner('a', 1.5), 422, 'order_by', 'int_parsing'],
    ['no file', banner('a', 1).slice(0, 2), 422, 'file', 'missing'],
    ['two files', [...banner('a', 1), banner('a', 1)[2]!], 422, 'file', 'too_long'],
    ['a video', banner('a', 1, mp4), 415, '', ''],
    ['a page', banner('a', 1, html), 415, '', ''],
    ['more than 5 MiB', banner('a', 1, grown(png, 5 * MIB + 1)), 413, '', ''],
  ] as [string, FormPart[], number, string, string][])(
    'a banner with %s is refused, and nothing is stored',
    async (_name, parts, status, field, type) => {
      const { add, folder, context } = await gallery(open)
      const answer = await add(parts)
      expect(answer.status).toBe(status)
      const { detail } = errorOf(answer)
      if (status === 422)
        expect(detail).toContainEqual(expect.objectContaining({ loc: ['body', field], type }))
      expect(filesIn(folder)).toEqual([])
      expect(await context.db.kysely.selectFrom('media').selectAll().execute()).toEqual([])
      expect(await context.db.kysely.selectFrom('banners').selectAll().execute()).toEqual([])
    },
  )

  test('a banner of exactly 5 MiB is accepted', async () => {
    const { add } = await gallery(open)
    expect((await add(banner('a', 1, grown(png, 5 * MIB)))).status).toBe(200)
  })

  test('a banner of a hub without access is refused before the form is read', async () => {
    const { add, key, folder } = await gallery(open)
    const limited = await key(['promotions:write'], { hubs: [1] })
    const denied = await add(banner('a', 1), 2, limited)
    expect([denied.status, errorOf(denied).error.code]).toEqual([403, 'hub_access_denied'])
    const absent = await add([], 2)
    expect([absent.status, errorOf(absent).error.code]).toEqual([404, 'hub_not_found'])
    expect(filesIn(folder)).toEqual([])
  })

  test('banners can be added and removed 90 times a minute', async () => {
    const { add, call, owner, key } = await gallery(open)
    expect((await add(banner('a', 1))).headers.get('X-RateLimit-Limit')).toBe('90')
    const gone = await call('DELETE', `${banners}/1?hub_id=1`, { key: owner })
    expect(gone.headers.get('X-RateLimit-Limit')).toBe('90')
    const reader = await key(['promotions:read'])
    const seen = await call('GET', `${banners}?hub_id=1`, { key: reader })
    expect(seen.headers.get('X-RateLimit-Limit')).toBe('360')
  })
})
