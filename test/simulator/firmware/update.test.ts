import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BLOCK_BYTES, type FrameOf, type Refusal } from '../../../protocol/serial/frames.ts'
import { HANGS, makeImage, sumOf } from '../../../simulator/firmware/image.ts'
import { openRoom, type Bench } from '../../world/room.ts'

const image = makeImage({ build: 2 }, 'a program of several blocks '.repeat(20))
const IMG = { type: 'IMG', kind: 'larder-sim', build: 2, size: image.length, sum: sumOf(image) } as const
const USE = { type: 'USE', sum: IMG.sum } as const
const KEEP = { type: 'KEEP', build: 2 } as const

const block = (at: number, bytes = image) =>
  ({
    type: 'BLK',
    at,
    data: Buffer.from(bytes.subarray(at, at + BLOCK_BYTES)).toString('base64url'),
  }) as const

/** Sends a frame; returns the answer, undefined without one. */
function answer(
  { host, clock }: Bench,
  body: Parameters<Bench['host']['send']>[0],
): 'ok' | Refusal | undefined {
  const from = host.received.length
  host.send(body)
  clock.advance(10)
  const got = host.received.slice(from).find(({ type }) => type === 'ACK' || type === 'NAK')
  return got && (got.type === 'NAK' ? got.why : 'ok')
}

function about(bench: Bench): FrameOf<'FW'> {
  answer(bench, { type: 'FWQ', v: 1 })
  return bench.host.last('FW')!
}

function sendAll(bench: Bench, bytes = image, first: object = IMG): void {
  expect(answer(bench, first as typeof IMG)).toBe('ok')
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) expect(answer(bench, block(at, bytes))).toBe('ok')
}

function cutPower(bench: Bench): void {
  bench.hub.power('off', 'front', 200)
  bench.clock.advance(1000)
  bench.reconnect()
}

function restartWith(bench: Bench, bytes = image, first: object = IMG): void {
  sendAll(bench, bytes, first)
  expect(answer(bench, { type: 'USE', sum: sumOf(bytes) })).toBe('ok')
  bench.clock.advance(1000)
  bench.reconnect()
}

describe('an update of the firmware (SPEC §12)', () => {
  test('a whole, signed image runs on trial after USE, and stays after KEEP', () => {
    const bench = openRoom()
    expect(about(bench)).toMatchObject({ kind: 'larder-sim', build: 1, trial: false })
    restartWith(bench)
    expect(bench.host.last('WELCOME')!.fw).toBe('larder-sim-2')
    expect(about(bench)).toMatchObject({ build: 2, trial: true })
    expect([answer(bench, IMG), answer(bench, USE)]).toEqual(['busy', 'busy'])
    expect(answer(bench, KEEP)).toBe('ok')
    cutPower(bench)
    expect(about(bench)).toMatchObject({ build: 2, trial: false })
    expect(about(bench).sum).toBeUndefined()
  })

  test('without KEEP the former firmware returns at the next start, or after three minutes', () => {
    const bench = openRoom()
    restartWith(bench)
    cutPower(bench)
    expect(about(bench)).toMatchObject({ build: 1, trial: false })
    restartWith(bench)
    bench.clock.advance(179_000)
    expect(about(bench)).toMatchObject({ build: 2, trial: true })
    bench.clock.advance(3000)
    bench.reconnect()
    expect(about(bench)).toMatchObject({ build: 1, trial: false })
  })

  test('a firmware that hangs is ended by the watchdog, and the former one returns', () => {
    const bench = openRoom()
    const dead = makeImage({ build: 2 }, HANGS)
    restartWith(bench, dead, { ...IMG, size: dead.length, sum: sumOf(dead) })
    expect(answer(bench, { type: 'FWQ', v: 1 })).toBeUndefined()
    bench.clock.advance(181_000)
    bench.reconnect()
    expect(about(bench)).toMatchObject({ build: 1, trial: false })
  })

  test('a controller refuses another kind, an older build, a large image, and blocks outside the image', () => {
    const bench = openRoom()
    const frames = [
      { ...IMG, kind: 'other' },
      { ...IMG, build: 1 },
      { ...IMG, size: 65_537 },
      block(0),
      USE,
      { ...KEEP, build: 7 },
    ]
    expect(frames.map((frame) => answer(bench, frame))).toEqual(frames.map(() => 'bad_argument'))
    answer(bench, { ...IMG, size: 100 })
    expect(answer(bench, block(0))).toBe('bad_argument')
    expect(about(bench)).toMatchObject({ build: 1, at: 0 })
  })

  test('a controller refuses an image of another maker, and one with another header than IMG', () => {
    const bench = openRoom()
    const forged = Buffer.from(image)
    forged[forged.length - 1]! ^= 1
    const newer = makeImage({ build: 3 })
    for (const [bytes, build] of [
      [forged, 2],
      [newer, 2],
    ] as const) {
      sendAll(bench, bytes, { ...IMG, build, size: bytes.length, sum: sumOf(bytes) })
      expect(answer(bench, { type: 'USE', sum: sumOf(bytes) })).toBe('bad_signature')
    }
    const { build, sum } = about(bench)
    expect([build, sum]).toEqual([1, undefined])
  })

  test('steps are refused while a motor runs, without a session, and while the flash cannot be written', () => {
    const bench = openRoom()
    answer(bench, IMG)
    bench.perform(1, 'bin-1', 'open_door', {}, 5)
    expect([answer(bench, IMG), answer(bench, block(0)), answer(bench, USE)]).toEqual([
      'busy',
      'busy',
      'busy',
    ])
    bench.clock.advance(10_000)
    bench.hub.faults.raise({ type: 'flash_fault', target: 'front' })
    expect(answer(bench, block(0))).toBe('memory_fault')
    bench.hub.faults.clearAll()
    bench.hub.power('off', 'front', 200)
    bench.clock.advance(1000)
    expect(answer(bench, block(0))).toBe('stale_host')
  })

  test('a formatted memory leaves the slots as they are', () => {
    const bench = openRoom()
    restartWith(bench)
    answer(bench, KEEP)
    answer(bench, { type: 'OWN', hub: 7, ctl: 'front', store: '5e11ab1e', wipe: true })
    cutPower(bench)
    expect(about(bench)).toMatchObject({ build: 2, trial: false })
  })

  test('power cuts, repetitions, motions and wrong blocks at any instant leave a whole firmware, and a transfer that ends', () => {
    const step = fc.oneof(
      { weight: 12, arbitrary: fc.constant('next' as const) },
      { weight: 2, arbitrary: fc.constantFrom('cut' as const, 'repeat' as const, 'session' as const) },
      { weight: 1, arbitrary: fc.constantFrom('wrong' as const, 'motion' as const, 'begin' as const) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const bench = openRoom()
        let motions = 0
        for (const each of [...steps, ...Array.from({ length: 12 }, () => 'next' as const)]) {
          const { build, trial, sum, at = 0 } = about(bench)
          // A firmware runs only if every byte of its image has arrived.
          expect([1, 2]).toContain(build)
          if (sum !== undefined) expect([sum, build]).toEqual([IMG.sum, 1])
          if (each === 'cut') cutPower(bench)
          else if (each === 'session') bench.reconnect()
          else if (each === 'begin') answer(bench, IMG)
          else if (each === 'repeat') answer(bench, block(Math.max(0, at - BLOCK_BYTES)))
          else if (each === 'wrong') answer(bench, block(at + 3 * BLOCK_BYTES))
          else if (each === 'motion') {
            motions += 1
            bench.perform(motions, 'bin-1', motions % 2 ? 'open_door' : 'close_door', {}, 10_000)
          } else if (build === 2) expect(answer(bench, KEEP)).toBe('ok')
          else if (sum === undefined) expect(answer(bench, IMG)).toBe('ok')
          else if (at < image.length) expect(answer(bench, block(at))).toBe('ok')
          else {
            expect(answer(bench, USE)).toBe('ok')
            bench.clock.advance(1000)
            bench.reconnect()
          }
          if (build === 1) expect(trial).toBe(false)
        }
        expect(about(bench)).toMatchObject({ build: 2, trial: false })
        // The log of motions and the memory of operations are complete.
        for (let n = 1; n <= motions; n += 1) expect(bench.actsOf(n)).toHaveLength(1)
      }),
      { numRuns: 40 },
    )
  })
})
