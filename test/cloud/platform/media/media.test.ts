import { expect, test } from 'vitest'
import { folderStore } from '../../../../cloud/platform/media/folder-store.ts'
import type { Media } from '../../../../cloud/platform/media/media.ts'
import type { MediaStore } from '../../../../cloud/platform/media/store.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { emptyFolder, filesIn, testMedia } from '../../support/media.ts'
import { png } from '../../support/media-samples.ts'
import { testContext } from '../../../world/context.ts'

const DAY = 24 * 3_600_000
const type = { kind: 'image', mimeType: 'image/png', extension: 'png' } as const

async function archive(open: OpenDatabase, wrap: (store: MediaStore) => MediaStore = (store) => store) {
  const db = await open()
  const folder = emptyFolder()
  const runtime = virtualRuntime(11)
  const faults: unknown[] = []
  const context = testContext(db, runtime, { onFault: (error) => void faults.push(error) })
  const store = wrap(folderStore(folder))
  const add = (media: Media) =>
    media.store({
      folder: 'profiles',
      number: undefined,
      type,
      content: (async function* () {
        yield png
      })(),
    })
  return {
    db,
    folder,
    clock: runtime.clock,
    faults,
    media: testMedia(context, store),
    /** Media of a process that dies at a checkpoint. */
    dyingAt: (point: string) => {
      const checkpoint = (passed: string) => {
        if (passed === point) throw new Crash()
      }
      return testMedia({ ...context, checkpoint }, store)
    },
    add,
    /** Runs the due work after a time. */
    sweep: async (afterMs = 0) => {
      runtime.clock.advance(afterMs)
      await new WorkRunner(context, testMedia(context, store).work).drain()
    },
    rows: async () =>
      (await db.kysely.selectFrom('media').select('state').execute()).map(({ state }) => state),
  }
}

class Crash extends Error {}

onEachDatabase('media', (open) => {
  test.each(['media.before-write', 'media.after-write'])(
    'the sweep removes the remains of a crash (%s) after a day, and not before',
    async (point) => {
      const { dyingAt, add, folder, clock, rows, sweep } = await archive(open)
      await expect(add(dyingAt(point))).rejects.toThrow(Crash)
      clock.advance(DAY - 1000)
      await sweep()
      expect(await rows()).toEqual(['pending'])
      clock.advance(2000)
      await sweep()
      expect([await rows(), filesIn(folder)]).toEqual([[], []])
    },
  )

  test.each(['media.before-remove', 'media.after-remove'])(
    'the sweep completes a removal at once that a crash (%s) interrupted',
    async (point) => {
      const { dyingAt, media, add, folder, rows, db, faults, sweep } = await archive(open)
      const { key } = await add(media)
      await db.transact((tx) => media.keep(tx, [key]))
      await db.transact((tx) => dyingAt(point).remove(tx, key))
      await expect.poll(() => faults.length).toBe(1)
      expect(await rows()).toEqual(['removed'])
      expect(await media.find(key)).toBeNull()
      await sweep(1000)
      expect([await rows(), filesIn(folder)]).toEqual([[], []])
    },
  )

  test('a kept file survives releases and sweeps', async () => {
    const { media, add, folder, clock, rows, db, sweep } = await archive(open)
    const { key } = await add(media)
    await db.transact((tx) => media.keep(tx, [key]))
    await media.release([key])
    clock.advance(10 * DAY)
    await sweep()
    expect([await rows(), filesIn(folder)]).toEqual([['kept'], [key]])
  })

  test('a transaction that is rolled back keeps no file and removes no file', async () => {
    const { media, add, folder, rows, db } = await archive(open)
    const [kept, pending] = [await add(media), await add(media)]
    await db.transact((tx) => media.keep(tx, [kept.key]))
    const failing = db.transact(async (tx) => {
      await media.keep(tx, [pending.key])
      await media.remove(tx, kept.key)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect((await rows()).sort()).toEqual(['kept', 'pending'])
    expect(filesIn(folder)).toHaveLength(2)
  })

  test('a swept file cannot be kept any more, and a reference to it fails', async () => {
    const { media, add, clock, db, sweep } = await archive(open)
    const { key } = await add(media)
    clock.advance(DAY + 1)
    await sweep()
    await expect(db.transact((tx) => media.keep(tx, [key]))).rejects.toThrow('no longer there')
  })

  test('the sweep retries a removal that the store refused; the file is unavailable at once', async () => {
    let isDown = true
    const { media, add, folder, rows, db, faults, sweep } = await archive(open, (store) => ({
      ...store,
      remove: (key) => (isDown ? Promise.reject(new Error('the store is down')) : store.remove(key)),
    }))
    const { key } = await add(media)
    await media.release([key])
    expect([await rows(), faults.length]).toEqual([['removed'], 1])
    await sweep(1000)
    expect(faults.length).toBe(2)
    await expect(db.transact((tx) => media.keep(tx, [key]))).rejects.toThrow('no longer there')
    isDown = false
    await sweep(60_000)
    expect([await rows(), filesIn(folder)]).toEqual([[], []])
  })

  test('numbers are unique per folder, also for simultaneous requests', async () => {
    const { media } = await archive(open)
    const numbers = await Promise.all(Array.from({ length: 20 }, () => media.nextNumber('maintenance')))
    expect([...numbers].sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    expect(await media.nextNumber('deals')).toBe(1)
  })
})
