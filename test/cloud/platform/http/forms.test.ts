import { Readable } from 'node:stream'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readForm, type ReceivedForm } from '../../../../cloud/platform/http/read-form.ts'
import { validateForm } from '../../../../cloud/platform/http/validate.ts'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import type { Media } from '../../../../cloud/platform/media/media.ts'
import type { Form } from '../../../../protocol/contract/form.ts'
import { routes } from '../../../../protocol/contract/routes.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { virtualRuntime, type VirtualClock } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { emptyFolder, filesIn, testMedia } from '../../support/media.ts'
import { fileOf, grown, html, mp4, png } from '../../support/media-samples.ts'
import { testContext } from '../../../world/context.ts'

const form = {
  fields: z.object({
    title: z.string().max(100),
    rank: z.int().optional(),
    tags: z.array(z.string()).optional(),
    data: z.object({ id: z.int() }).optional(),
  }),
  files: {
    cover: { required: true, imageBytes: 10_000 },
    clips: { maxFiles: 3, imageBytes: 10_000, videoBytes: 20_000 },
  },
  totalBytes: 40_000,
  folder: 'banners',
} as const satisfies Form

type Part = [name: string, value: string | File]

interface Bench {
  folder: string
  media: Media
  clock: VirtualClock
  db: CloudDatabase
  /** Reads a form that is sent in chunks. */
  read: (bytes: Readable | null, contentType?: string, length?: number) => Promise<ReceivedForm>
  /** Reads a form that a client makes. */
  send: (...parts: Part[]) => Promise<ReceivedForm>
}

function bench(db: CloudDatabase): Bench {
  const folder = emptyFolder()
  const runtime = virtualRuntime(5)
  const context = testContext(db, runtime)
  const media = testMedia(context, folderStore(folder))
  const read: Bench['read'] = (bytes, contentType, length = 0) =>
    readForm(
      media,
      {
        ...context.settings,
        clock: runtime.clock,
        cleaning: { parts: 1000, pixels: 1000, processorMs: 10_000 },
        spent: () => {},
      },
      { form, contentType, body: { length, bytes } },
    )
  return {
    folder,
    media,
    clock: runtime.clock,
    db,
    read,
    async send(...parts) {
      const { bytes, contentType } = await encode(parts)
      return read(Readable.from([bytes]), contentType)
    },
  }
}

async function encode(parts: readonly Part[]): Promise<{ bytes: Buffer; contentType: string }> {
  const data = new FormData()
  for (const [name, value] of parts) data.append(name, value)
  const request = new Request('http://larder.test', { method: 'POST', body: data })
  return {
    bytes: Buffer.from(await request.arrayBuffer()),
    contentType: request.headers.get('content-type')!,
  }
}

const cover: Part = ['cover', fileOf(png, 'cover.png')]
const title: Part = ['title', 'Spring']

async function refusal(work: Promise<unknown>): Promise<ApiError> {
  try {
    await work
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('it was taken')
}

onEachDatabase('a multipart form', (open) => {
  const nothingLeft = async ({ folder, db }: Bench) => {
    expect(filesIn(folder)).toEqual([])
    expect(await db.kysely.selectFrom('media').selectAll().execute()).toEqual([])
  }

  test('a picture with too many pixels or without a size is refused', async () => {
    const made = bench(await open())
    const huge = Buffer.from(png)
    huge.writeUInt32BE(50_000, 16)
    huge.writeUInt32BE(50_000, 20)
    const large = await refusal(made.send(title, ['cover', fileOf(huge, 'a.png')]))
    expect([large.code, large.message]).toEqual([
      'payload_too_large',
      'cover: an image may have 1000 pixels, and this one has 50000 × 50000.',
    ])
    const headless = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xda, 0, 2]), Buffer.alloc(5000)])
    expect((await refusal(made.send(title, ['cover', fileOf(headless, 'a.jpg')]))).code).toBe(
      'unsupported_media_type',
    )
    await nothingLeft(made)
  })

  test('a form is read with its text and files, in any order', async () => {
    const { send, folder, db } = bench(await open())
    const clip: Part = ['clips', fileOf(mp4, 'a.mp4')]
    const orders: Part[][] = [
      [title, cover, clip],
      [clip, cover, title],
    ]
    const prints = new Set<string>()
    for (const parts of orders) {
      const received = await send(...parts, ['tags', 'b'], ['tags', 'a'])
      expect(received.texts.get('title')).toBe('Spring')
      expect(received.items).toEqual([])
      expect([...received.files].sort((a, b) => (a.fieldname < b.fieldname ? 1 : -1))).toMatchObject([
        { fieldname: 'cover', original_name: 'cover.png', mime_type: 'image/png', size: png.length },
        { fieldname: 'clips', original_name: 'a.mp4', mime_type: 'video/mp4', size: mp4.length },
      ])
      prints.add(received.fingerprint)
    }
    expect(prints.size).toBe(2)
    expect(filesIn(folder)).toHaveLength(4)
    const rows = await db.kysely.selectFrom('media').select(['state', 'size']).execute()
    expect(rows.map(({ state }) => state)).toEqual(Array(4).fill('pending'))
  })

  test('two forms with equal content are the same request for any boundary, and other content is another request', async () => {
    const { send } = bench(await open())
    const first = await send(title, cover)
    expect((await send(title, cover)).fingerprint).toBe(first.fingerprint)
    expect((await send(['title', 'Autumn'], cover)).fingerprint).not.toBe(first.fingerprint)
    const other: Part = ['cover', fileOf(grown(png, 500), 'cover.png')]
    expect((await send(title, other)).fingerprint).not.toBe(first.fingerprint)
  })

  test('unknown text, and a field without a chosen file, are left out', async () => {
    const { send, folder } = bench(await open())
    const received = await send(
      title,
      cover,
      ['clips', fileOf(Buffer.alloc(0), '')],
      ['nothing', fileOf(Buffer.alloc(0), '')],
      ['toString', 'x'],
    )
    expect(received.items).toEqual([])
    expect(received.files.map(({ fieldname }) => fieldname)).toEqual(['cover'])
    expect([...received.texts.keys()]).toEqual(['title'])
    expect(filesIn(folder)).toHaveLength(1)
  })

  test('a file under an unknown field name is refused, and none of it is stored', async () => {
    const { send, folder } = bench(await open())
    for (const name of ['__proto__', 'constructor', 'other', 'Cover', 'clip', 'title2']) {
      const received = await send(title, cover, [name, fileOf(html, 'o.html')])
      expect(received.items).toMatchObject([{ loc: ['body', name], type: 'extra_forbidden' }])
      expect(received.files.map(({ fieldname }) => fieldname)).toEqual(['cover'])
    }
    expect(filesIn(folder)).toHaveLength(6)
  })

  test('a file under a list name is a file of the field', async () => {
    const { send } = bench(await open())
    const received = await send(
      title,
      ['cover[]', fileOf(png, 'c.png')],
      ['clips[]', fileOf(png, 'a.png')],
      ['clips[1]', fileOf(mp4, 'b.mp4')],
    )
    expect(received.items).toEqual([])
    expect(received.files.map(({ fieldname }) => fieldname)).toEqual(['cover', 'clips', 'clips'])
  })

  test('a file name is text without folders', async () => {
    const { send } = bench(await open())
    const names = {
      '../../etc/passwd': 'passwd',
      'C:\\x\\bild.png': 'bild.png',
      'Tür ☕.png': 'Tür ☕.png',
      'a\u0000\u202eb.png': 'ab.png',
    }
    for (const [sent, kept] of Object.entries(names)) {
      const received = await send(title, ['cover', fileOf(png, sent)])
      expect(received.files[0]).toMatchObject({
        original_name: kept,
        key: expect.stringMatching(/^banners\/[0-9a-f-]{36}\.png$/) as string,
      })
    }
    const long = await send(title, ['cover', fileOf(png, `${'x'.repeat(1000)}.png`)])
    expect(long.files[0]!.original_name).toHaveLength(255)
  })

  describe('a refused form leaves no file', () => {
    test('a file of the wrong type is refused, whatever its name claims', async () => {
      const it = bench(await open())
      const wrong: Part[] = [
        ['cover', fileOf(html, 'cover.png', 'image/png')],
        ['cover', fileOf(mp4, 'cover.mp4')],
        ['cover', fileOf(Buffer.alloc(0), 'empty.png', 'image/png')],
        ['clips', fileOf(Buffer.from('RIFF'), 'x.webp')],
        ['cover', 'just text'],
      ]
      for (const part of wrong) {
        const error = await refusal(it.send(title, ['clips', fileOf(png, 'before.png')], part))
        expect([error.code, error.details?.['field']]).toEqual(['unsupported_media_type', part[0]])
        await nothingLeft(it)
      }
    })

    test('a file that is too large for its kind, or files that are too large together, are refused', async () => {
      const it = bench(await open())
      const sized = (name: string, head: Buffer, size: number): Part => [name, fileOf(grown(head, size), 'x')]
      expect(
        (await it.send(title, sized('cover', png, 10_000), sized('clips', mp4, 20_000))).files,
      ).toHaveLength(2)
      const other = bench(await open())
      for (const parts of [
        [sized('cover', png, 10_001)],
        [cover, sized('clips', png, 10_001)],
        [cover, sized('clips', mp4, 20_001)],
        [cover, sized('clips', mp4, 20_000), sized('clips', mp4, 20_000)],
      ]) {
        expect((await refusal(other.send(title, ...parts))).code).toBe('payload_too_large')
        await nothingLeft(other)
      }
    })

    test('more files than the field allows are refused', async () => {
      const it = bench(await open())
      const clips = Array.from({ length: 4 }, (_, index): Part => ['clips', fileOf(png, `${index}.png`)])
      const error = await refusal(it.send(cover, ...clips))
      expect(error.items).toEqual([
        expect.objectContaining({ loc: ['body', 'clips'], type: 'too_long', ctx: { max_length: 3 } }),
      ])
      const twice = await refusal(it.send(cover, cover))
      expect(twice.items).toMatchObject([{ loc: ['body', 'cover'], type: 'too_long' }])
      await nothingLeft(it)
    })

    test('too much text, too many parts, and a length that announces too much are refused', async () => {
      const it = bench(await open())
      const heavy = 'x'.repeat(900_000)
      for (const parts of [
        [['title', 'x'.repeat(1024 * 1024 + 1)]],
        [
          ['title', heavy],
          ['other', heavy],
        ],
        [['other', fileOf(Buffer.alloc(1_500_000), 'big.bin')]],
      ] as Part[][])
        expect((await refusal(it.send(cover, ...parts))).code).toBe('payload_too_large')
      const many = Array.from({ length: 101 }, (): Part => ['tags', 'x'])
      expect((await refusal(it.send(...many))).code).toBe('validation_error')
      const announced = Readable.from([Buffer.from('never read')])
      const error = await refusal(it.read(announced, 'multipart/form-data; boundary=x', 2_000_000))
      expect([error.code, announced.readableDidRead]).toEqual(['payload_too_large', false])
      await nothingLeft(it)
    })

    test('a body of another type, or without a boundary, is refused', async () => {
      const it = bench(await open())
      for (const type of [
        undefined,
        'application/json',
        'multipart/form-data',
        'multipart/form-data; boundary',
        'multipart/mixed; boundary=x',
      ])
        expect((await refusal(it.read(Readable.from([Buffer.from('{}')]), type))).code).toBe(
          'unsupported_media_type',
        )
    })

    test('a form ends if its sender disconnects, or is silent for half a minute', async () => {
      const it = bench(await open())
      const { bytes, contentType } = await encode([title, ['cover', fileOf(grown(png, 9000), 'x.png')]])
      const broken = new Readable({ read() {} })
      const gone = refusal(it.read(broken, contentType))
      broken.push(bytes.subarray(0, 6000))
      await expect.poll(() => it.db.kysely.selectFrom('media').selectAll().execute()).toHaveLength(1)
      broken.destroy(new Error('ECONNRESET'))
      expect((await gone).code).toBe('validation_error')

      const silent = new Readable({ read() {} })
      const stalled = refusal(it.read(silent, contentType))
      silent.push(bytes.subarray(0, 6000))
      await expect.poll(() => it.db.kysely.selectFrom('media').selectAll().execute()).toHaveLength(1)
      it.clock.advance(29_000)
      expect(silent.destroyed).toBe(false)
      it.clock.advance(1001)
      expect((await stalled).code).toBe('request_timeout')
      await nothingLeft(it)
    })

    test('any truncated, damaged or oddly split body is read to an end, and leaves no unreturned file', async () => {
      const it = bench(await open())
      const { bytes, contentType } = await encode([
        title,
        ['data', '{"id":1}'],
        cover,
        ['clips', fileOf(grown(mp4, 15_000), 'x.mp4')],
      ])
      const change = fc.record({
        cut: fc.option(fc.nat(bytes.length), { nil: bytes.length }),
        damage: fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 3 }),
        pieces: fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 20 }),
      })
      await fc.assert(
        fc.asyncProperty(change, async ({ cut, damage, pieces }) => {
          const body = Buffer.from(bytes)
          for (const [at, value] of damage) body[at] = value
          const read = it.read(Readable.from(split(body.subarray(0, cut), pieces)), contentType)
          const outcome = await Promise.race([
            read.catch((error: unknown) => error),
            new Promise((resolve) => setTimeout(() => resolve('never ended'), 5000)),
          ])
          if (outcome instanceof ApiError) return nothingLeft(it)
          const { files } = outcome as ReceivedForm
          expect(filesIn(it.folder)).toEqual(files.map(({ key }) => key).sort())
          await it.media.release(files.map(({ key }) => key))
          await nothingLeft(it)
        }),
        { numRuns: 150 },
      )
    }, 60_000)
  })
})

function split(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  for (const length of lengths) pieces.push(bytes.subarray(at, (at += length)))
  return [...pieces, bytes.subarray(at)].filter((piece) => piece.length > 0)
}

describe('the text of a form', () => {
  const route = {
    ...routes['owner.banners.create'],
    form,
    badValues: { 'body.data': 'invalid_json', 'body.data.id': 'hub_id_required' },
  } as const
  const parse = (fields: Record<string, string>) =>
    validateForm(route, form, { texts: new URLSearchParams(fields), items: [] })
  const refused = (fields: Record<string, string>) => refusal(Promise.resolve().then(() => parse(fields)))

  test('the text of a form is parsed as the types of its fields: integers, lists, and JSON for objects', () => {
    expect(parse({ title: 'a', rank: '7', tags: 'x', data: '{"id": 3}' })).toEqual({
      title: 'a',
      rank: 7,
      tags: ['x'],
      data: { id: 3 },
    })
  })

  test('a problem is reported at its field, also within JSON, with the documented code', async () => {
    const missing = await refused({})
    expect([missing.code, missing.items]).toEqual([
      'validation_error',
      [{ loc: ['body', 'title'], type: 'missing', msg: 'Field required' }],
    ])
    expect((await refused({ title: 'a', rank: '1.5' })).items).toMatchObject([
      { loc: ['body', 'rank'], type: 'int_parsing' },
    ])
    const inside = await refused({ title: 'a', data: '{}' })
    expect([inside.code, inside.status, inside.items]).toMatchObject([
      'hub_id_required',
      422,
      [{ loc: ['body', 'data', 'id'], type: 'missing' }],
    ])
    const nul = await refused({ title: 'a\0' })
    expect(nul.items).toMatchObject([{ loc: ['body', 'title'], type: 'value_error' }])
  })

  test('malformed JSON in a form is 400 on owner paths, and names the field', async () => {
    for (const data of ['', '{', 'x', '[]', '"x"', 'null']) {
      const error = await refused({ title: 'a', data })
      expect([data, error.code, error.status, error.items]).toEqual([data, 'invalid_json', 400, undefined])
    }
  })
})
