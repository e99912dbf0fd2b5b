import { assert, integer, property } from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { defaultCoreSettings } from '../../../protocol/settings/hub-limits.ts'
import { FrameQueue } from '../../../simulator/firmware/frame-queue.ts'
import { HANGS, makeImage } from '../../../simulator/firmware/image.ts'
import { Crash, TestHub } from '../../world/hub.ts'
import { imageOf } from '../../world/firmware.ts'
import {
  attempts,
  builds,
  CONTROLLERS,
  failed,
  hubWith,
  MINUTE,
  NEW,
  OLD,
  program,
} from '../support/firmware-bench.ts'

describe('an update of the controllers’ firmware', () => {
  test('the hub updates one controller after another, ten minutes after its start, and sells afterwards', () => {
    const bench = hubWith()
    bench.run(9 * MINUTE)
    expect(builds(bench)).toEqual(OLD)
    bench.run(2 * MINUTE)
    expect(builds(bench)).toEqual(NEW)
    expect(bench.logged('info').filter((line) => line.includes('new firmware'))).toEqual(
      CONTROLLERS.flatMap(() => [
        'the hub sends a new firmware to a controller',
        'the controller keeps its new firmware',
      ]),
    )
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
    expect(failed(bench)).toEqual([])
  })

  test('a hub without a newer image, or with an image of another kind, sends nothing', () => {
    for (const bytes of [makeImage({ build: 1 }), makeImage({ kind: 'other', build: 9 })]) {
      const bench = hubWith(bytes)
      bench.run(15 * MINUTE)
      expect(builds(bench)).toEqual(OLD)
      expect(bench.logged('info')).not.toContain('the hub sends a new firmware to a controller')
    }
  })

  test('an order interrupts a transfer between two blocks, and nothing is sent before it has ended', () => {
    const bench = hubWith()
    const sent = (): number => bench.passed.filter((point) => point === 'core.before-firmware-BLK').length
    expect(bench.runUntil(() => sent() > 3, 11 * MINUTE)).toBe(true)
    bench.queue(1, { 4: 1 })
    const before = sent()
    expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
    bench.run(5 * MINUTE)
    expect([sent(), builds(bench)]).toEqual([before, OLD])
    bench.command({ name: 'cancel_order', order_id: bench.order(1, {}).order_id })
    bench.run(2 * 60 * MINUTE)
    expect(builds(bench)).toEqual(NEW)
  })

  test('a firmware that hangs is given up after three attempts; its controller sells with the former firmware, and other controllers keep theirs', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    bench.run(11 * MINUTE)
    bench.queue(1, { 4: 1 })
    bench.run(10 * MINUTE)
    expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
    bench.run(2 * 60 * MINUTE)
    expect(builds(bench)).toEqual(OLD)
    expect(failed(bench)).toEqual(['controller bins: firmware 2: the controller keeps firmware 1'])
    bench.queue(2, { 5: 1 })
    expect(bench.runUntil(() => bench.phase(2) === 'ready')).toBe(true)
    bench.images = [imageOf(makeImage({ build: 3 }, program))]
    bench.restart()
    bench.run(3 * 60 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([CONTROLLERS.map(() => '3 kept'), []])
  })

  test('an image of another maker is refused at once, and raises one alarm', () => {
    const forged = Buffer.from(makeImage({ build: 2 }, program))
    forged[forged.length - 1]! ^= 1
    const bench = hubWith(forged)
    bench.run(60 * MINUTE)
    expect(builds(bench)).toEqual(OLD)
    expect(failed(bench)).toEqual(['controller bins: firmware 2: the controller refuses it: bad_signature'])
  })

  test('a controller without a connection during its update keeps its firmware pending', () => {
    const bench = hubWith()
    bench.runUntil(() => attempts(bench).includes('bins'), 60 * MINUTE)
    bench.room.power('off', 'bins')
    bench.run(2 * MINUTE)
    bench.restart()
    bench.run(60 * MINUTE)
    expect(bench.firmwareOutcomes).not.toContain('done')
    bench.room.power('on', 'bins')
    bench.run(60 * MINUTE)
    expect([builds(bench), bench.firmwareOutcomes.at(-1)]).toEqual([NEW, 'done'])
  })

  test('the hub notes that its firmware is pending from the start until all controllers run it, or until one fails', () => {
    const bench = hubWith()
    bench.run(9 * MINUTE)
    expect(bench.firmwareOutcomes).toEqual(['pending'])
    bench.run(2 * MINUTE)
    expect([builds(bench), bench.firmwareOutcomes]).toEqual([NEW, ['pending', 'done']])
    const failing = hubWith(makeImage({ build: 2 }, HANGS))
    failing.run(60 * MINUTE)
    const error = 'controller bins: firmware 2: the controller keeps firmware 1'
    expect(failing.firmwareOutcomes).toEqual(['pending', { error }])
    const silent = hubWith()
    silent.room.power('off', 'vending')
    silent.run(60 * MINUTE)
    expect(silent.firmwareOutcomes.at(-1)).toBe('done')
    const without = TestHub.ready()
    expect(without.firmwareOutcomes).toEqual(['done'])
  })

  test('a hub uses controllers that know no updates as before', () => {
    const bench = new TestHub(1, new Map(CONTROLLERS.map((id) => [id, 2])))
    bench.images = [imageOf(makeImage({ build: 2 }))]
    bench.begin()
    bench.apply(bench.snapshot())
    bench.run(12 * MINUTE)
    expect(builds(bench)).toEqual(OLD)
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
  })

  test('a controller that is asked for its firmware and never reports it sells after half a minute, without updates', () => {
    const send = Reflect.get(FrameQueue.prototype, 'send')
    const sent = vi.spyOn(FrameQueue.prototype, 'send').mockImplementation(function (
      this: FrameQueue,
      body,
      done,
    ) {
      if (body.type !== 'FW') send.call(this, body, done)
    })
    onTestFinished(() => sent.mockRestore())
    const bench = hubWith()
    bench.queue(1, { 4: 1 })
    expect(bench.runUntil(() => bench.phase(1) === 'ready', 5 * MINUTE)).toBe(true)
    expect(bench.logged('warn')).toContain('the controller has not reported its firmware')
    bench.command({ name: 'cancel_order', order_id: bench.order(1, {}).order_id })
    bench.run(30 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([OLD, []])
  })

  test('a crash at any point of an update leaves a controller that the next life updates, with each unit dispensed once', () => {
    assert(
      property(integer({ min: 0, max: 140 }), integer({ min: 0, max: 140 }), (first, second) => {
        const bench = hubWith()
        for (const at of [first, second]) {
          let passed = 0
          bench.onCheckpoint = (point) => {
            if (point.includes('firmware') && passed++ === at) throw new Crash(point)
          }
          bench.run(12 * MINUTE)
          bench.onCheckpoint = () => {}
          if (!bench.alive) bench.begin()
          bench.apply(bench.snapshot())
          bench.run(100)
        }
        bench.queue(1, { 4: 1 })
        expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
        bench.command({ name: 'cancel_order', order_id: bench.order(1, {}).order_id })
        expect(bench.dispenses()).toHaveLength(1)
      }),
      { numRuns: 10 },
    )
  })

  test('power cuts of controllers at any instant of an update leave a whole firmware, and the update is completed or given up', () => {
    assert(
      property(integer({ min: 1, max: 20_000 }), integer({ min: 0, max: 2 }), (everyMs, which) => {
        const bench = hubWith()
        bench.run(10 * MINUTE - 3000)
        for (let cut = 0; cut < 12; cut += 1) {
          bench.run(everyMs)
          bench.fault('brown_out', CONTROLLERS[which])
        }
        bench.run(60 * MINUTE)
        const now = builds(bench)
        if (failed(bench).length === 0) expect(now).toEqual(NEW)
        else for (const build of now) expect([OLD[0], NEW[0]]).toContain(build)
        bench.queue(1, { 4: 1 })
        expect(bench.runUntil(() => bench.phase(1) === 'ready')).toBe(true)
        expect(bench.dispenses()).toHaveLength(1)
      }),
      { numRuns: 10 },
    )
  })
})

test('the pause before the first transfer is longer than the time in which a release of the hub is confirmed', () => {
  expect(defaultCoreSettings.firmware.afterMs).toBeGreaterThan(5 * MINUTE)
})
