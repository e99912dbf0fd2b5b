import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uuidv7 } from '../../../../protocol/model/ids.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import { openMediaStore } from '../../../../cloud/platform/media/open-store.ts'
import { PART_BYTES, s3Store } from '../../../../cloud/platform/media/s3-store.ts'
import type { MediaStore } from '../../../../cloud/platform/media/store.ts'
import { emptyFolder, filesIn } from '../../support/media.ts'
import { S3_BUCKET, S3_KEY, S3_REGION, startS3Server, type S3Server } from '../../support/s3-server.ts'

const runtime = systemRuntime()
const MIB = 1024 * 1024
const newKey = (folder = 'banners', extension = 'png'): string => `${folder}/${uuidv7(runtime)}.${extension}`

/** Bytes that are nowhere the same, in chunks as a socket brings them. */
async function* bytesOf(size: number, failAt = Infinity): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size;) {
    if (at >= failAt) throw new Error('the sender is gone')
    const length = Math.min(65_000, size - at)
    const chunk = Buffer.alloc(length)
    for (let index = 0; index + 4 <= length; index += 4) chunk.writeUInt32LE(at + index, index)
    yield chunk
    at += length
  }
}

async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<{ size: number; digest: string }> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.byteLength
    hash.update(chunk)
  }
  return { size, digest: hash.digest('hex') }
}

const contentOf = async (stream: ReadableStream<Uint8Array> | null): Promise<Buffer> => {
  expect(stream).not.toBeNull()
  return Buffer.from(await new Response(stream).arrayBuffer())
}

/** What every store does. */
function storeContract(name: string, open: () => MediaStore): void {
  describe(`a media store: ${name}`, () => {
    for (const size of [1, 4096, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 21 * MIB])
      test(`gives back what was written: ${size} bytes`, async () => {
        const store = open()
        const key = newKey()
        await store.write(key, 'image/png', bytesOf(size))
        const stream = await store.read(key)
        expect(await digestOf(stream as unknown as AsyncIterable<Uint8Array>)).toEqual(
          await digestOf(bytesOf(size)),
        )
        await store.remove(key)
        expect(await store.read(key)).toBeNull()
      })

    test('gives back a part, both ends included', async () => {
      const store = open()
      const key = newKey('maintenance/7', 'mp4')
      await store.write(key, 'video/mp4', bytesOf(100_000))
      const whole = await contentOf(await store.read(key))
      for (const [first, last] of [
        [0, 0],
        [10, 19],
        [65_000, 99_999],
        [0, 99_999],
      ] as const)
        expect(await contentOf(await store.read(key, { first, last }))).toEqual(
          whole.subarray(first, last + 1),
        )
      await store.remove(key)
    })

    for (const failAt of [0, 1000, 12 * MIB])
      test(`keeps nothing of what breaks off after ${failAt} bytes, and says why`, async () => {
        const store = open()
        const key = newKey()
        await expect(store.write(key, 'image/png', bytesOf(20 * MIB, failAt))).rejects.toThrow(
          'the sender is gone',
        )
        expect(await store.read(key)).toBeNull()
      })

    test('what is not there is null, and can be removed', async () => {
      const store = open()
      const key = newKey()
      expect(await store.read(key)).toBeNull()
      await store.remove(key)
    })

    test('knows no place outside: what is no key is refused', async () => {
      const store = open()
      const uuid = uuidv7(runtime)
      for (const key of [
        '../x',
        `../${uuid}.png`,
        `banners/../${uuid}.png`,
        `/banners/${uuid}.png`,
        `banners/${uuid}.png/..`,
        `banners//${uuid}.png`,
        `banners/${uuid}.png\0`,
        '',
        'banners',
      ]) {
        await expect(store.write(key, 'image/png', bytesOf(1))).rejects.toThrow('not a key')
        await expect(store.read(key)).rejects.toThrow('not a key')
        await expect(store.remove(key)).rejects.toThrow('not a key')
      }
    })

    test('several at once do not disturb each other', async () => {
      const store = open()
      const keys = Array.from({ length: 8 }, () => newKey('maintenance/9', 'webm'))
      await Promise.all(keys.map((key, index) => store.write(key, 'video/webm', bytesOf(10_000 + index))))
      const sizes = await Promise.all(
        keys.map(async (key) => (await contentOf(await store.read(key))).length),
      )
      expect(sizes).toEqual(keys.map((_, index) => 10_000 + index))
      await Promise.all(keys.map((key) => store.remove(key)))
    })
  })
}

const folder = emptyFolder()
storeContract('a folder', () => folderStore(folder))

test('a folder is empty again once everything is removed, folders of objects too', () => {
  expect(filesIn(folder)).toEqual([])
  expect(existsSync(join(folder, 'maintenance/7'))).toBe(false)
})

// A file that the system opens while its write is already being given up would stay for ever.
test('in a folder the file is open before its bytes are asked for, so that it goes when they fail', async () => {
  const root = emptyFolder()
  let open: string[] = []
  async function* content(): AsyncGenerator<Uint8Array> {
    open = filesIn(root)
    yield* bytesOf(1, 0)
  }
  const key = newKey()
  await expect(folderStore(root).write(key, 'image/png', content())).rejects.toThrow('the sender is gone')
  expect([open, filesIn(root)]).toEqual([[`${key}.part`], []])
})

test('in a folder, what a crash left half-written is not there, and goes with its key', async () => {
  const root = emptyFolder()
  const key = newKey('maintenance/3')
  mkdirSync(dirname(join(root, key)), { recursive: true })
  writeFileSync(join(root, `${key}.part`), 'half')
  const store = folderStore(root)
  expect(await store.read(key)).toBeNull()
  await store.remove(key)
  expect(filesIn(root)).toEqual([])
})

let server: S3Server
beforeAll(async () => void (server = await startS3Server()))
afterAll(() => server.close())
const open = (prefix = '') => s3Store({ endpoint: server.endpoint, region: S3_REGION, prefix, ...S3_KEY })

storeContract('S3', () => open())
storeContract('S3 below a prefix', () => open('larder/demo'))

/** A server of the tester's: `http://host:9000/bucket`, with its region and keys in the variables of AWS. */
const {
  TEST_S3_URL,
  AWS_REGION = 'us-east-1',
  AWS_ACCESS_KEY_ID = '',
  AWS_SECRET_ACCESS_KEY = '',
} = process.env
if (TEST_S3_URL !== undefined)
  storeContract('S3 of the tester', () =>
    s3Store({
      endpoint: TEST_S3_URL,
      region: AWS_REGION,
      prefix: '',
      accessKeyId: AWS_ACCESS_KEY_ID,
      secretAccessKey: AWS_SECRET_ACCESS_KEY,
    }),
  )

describe('S3', () => {
  test('has nothing left of all that, neither objects nor uploads, and no request was larger than a part', () => {
    expect([...server.objects.keys()]).toEqual([])
    expect(server.uploads()).toEqual([])
    expect(server.largestBody).toBe(PART_BYTES)
  })

  test('keeps the type of a file, in one piece or in several', async () => {
    for (const size of [10, 9 * MIB]) {
      const key = newKey('banners', 'webp')
      await open('a/b').write(key, 'image/webp', bytesOf(size))
      expect(server.objects.get(`a/b/${key}`)?.type).toBe('image/webp')
      await open('a/b').remove(key)
    }
  })

  test('an upload that a crash left open goes with its key', async () => {
    const key = newKey()
    // As a process that died leaves it: begun, one part sent, and nobody to abort it.
    server.failWhen((method) => method === 'DELETE')
    await expect(open().write(key, 'image/png', bytesOf(20 * MIB, 12 * MIB))).rejects.toThrow('gone')
    const other = newKey()
    server.failWhen((method) => method === 'DELETE')
    await expect(open().write(other, 'image/png', bytesOf(20 * MIB, 12 * MIB))).rejects.toThrow('gone')
    expect(server.uploads()).toEqual([key, other])
    await open().remove(key)
    expect(server.uploads()).toEqual([other])
    await open().remove(other)
    expect(server.uploads()).toEqual([])
  })

  test('a completion that is answered with 200 and an error has failed', async () => {
    server.refuseCompletions = true
    const key = newKey()
    await expect(open().write(key, 'image/png', bytesOf(9 * MIB))).rejects.toThrow('did not put')
    server.refuseCompletions = false
    expect(await open().read(key)).toBeNull()
    expect(server.uploads()).toEqual([])
  })

  test('a wrong key and a server that fails are errors, not absence', async () => {
    const wrong = s3Store({
      endpoint: server.endpoint,
      region: S3_REGION,
      prefix: '',
      ...S3_KEY,
      secretAccessKey: 'x',
    })
    await expect(wrong.read(newKey())).rejects.toThrow('403')
    await expect(wrong.write(newKey(), 'image/png', bytesOf(10))).rejects.toThrow('403')
    server.failWhen(() => true)
    await expect(open().read(newKey())).rejects.toThrow('500')
  })

  test('is chosen by MEDIA_URL, with prefix, endpoint and region', async () => {
    const { origin } = new URL(server.endpoint)
    const url = `s3://${S3_BUCKET}/shop/one?endpoint=${encodeURIComponent(origin)}&region=${S3_REGION}`
    const key = newKey()
    const store = openMediaStore(url, S3_KEY)
    await store.write(key, 'image/png', bytesOf(10))
    expect([...server.objects.keys()]).toEqual([`shop/one/${key}`])
    await store.remove(key)
    expect(() => openMediaStore(url, { accessKeyId: undefined, secretAccessKey: undefined })).toThrow(
      'AWS_ACCESS_KEY_ID',
    )
  })
})
