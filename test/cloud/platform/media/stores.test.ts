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

/** Bytes without repetition, in chunks as from a socket. All chunks share one memory. */
async function* bytesOf(size: number, failAt = Infinity): AsyncGenerator<Uint8Array> {
  const memory = Buffer.alloc(65_000)
  for (let at = 0; at < size;) {
    if (at >= failAt) throw new Error('the sender is gone')
    const length = Math.min(65_000, size - at)
    const chunk = memory.subarray(0, length)
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

/** The contract of every store. */
function storeContract(name: string, open: () => MediaStore): void {
  describe(`a media store: ${name}`, () => {
    for (const size of [1, 4096, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 21 * MIB])
      test(`the store returns the written bytes: ${size} bytes`, async () => {
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

    test('the store returns a part, both ends included', async () => {
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
      test(`the store stores nothing of a write that breaks off after ${failAt} bytes, and returns the cause`, async () => {
        const store = open()
        const key = newKey()
        await expect(store.write(key, 'image/png', bytesOf(20 * MIB, failAt))).rejects.toThrow(
          'the sender is gone',
        )
        expect(await store.read(key)).toBeNull()
      })

    test('a missing file is null, and can be removed', async () => {
      const store = open()
      const key = newKey()
      expect(await store.read(key)).toBeNull()
      await store.remove(key)
    })

    test('the store refuses an invalid key, so that no path leads outside', async () => {
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

    test('simultaneous writes do not disturb each other', async () => {
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

test('a folder is empty again after all files are removed, without empty subfolders', () => {
  expect(filesIn(folder)).toEqual([])
  expect(existsSync(join(folder, 'maintenance/7'))).toBe(false)
})

// Otherwise a file that is opened during an aborted write would stay forever.
test('a folder store opens the file before it reads the bytes, so that a failed write removes it', async () => {
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

test('a file half written before a crash does not exist in a folder store, and is removed with its key', async () => {
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

/**
 * An S3 server of the tester: `http://host:9000/bucket`, with its region and keys in the variables of AWS.
 */
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
  test('the S3 server has no objects and uploads left, and no request was larger than a part', () => {
    expect([...server.objects.keys()]).toEqual([])
    expect(server.uploads()).toEqual([])
    expect(server.largestBody).toBe(PART_BYTES)
  })

  test('S3 stores the type of a file, in one part or several', async () => {
    for (const size of [10, 9 * MIB]) {
      const key = newKey('banners', 'webp')
      await open('a/b').write(key, 'image/webp', bytesOf(size))
      expect(server.objects.get(`a/b/${key}`)?.type).toBe('image/webp')
      await open('a/b').remove(key)
    }
  })

  test('an upload that a crash left open is removed with its key', async () => {
    const key = newKey()
    // A dead process leaves this: an upload with one part, and no abort.
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

  test('a completion with status 200 and an error has failed', async () => {
    server.refuseCompletions = true
    const key = newKey()
    await expect(open().write(key, 'image/png', bytesOf(9 * MIB))).rejects.toThrow('did not put')
    server.refuseCompletions = false
    expect(await open().read(key)).toBeNull()
    expect(server.uploads()).toEqual([])
  })

  test('a wrong key and a failing server are errors, not absence', async () => {
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

  test('MEDIA_URL selects S3 with prefix, endpoint and region', async () => {
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
