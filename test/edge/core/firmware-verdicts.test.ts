import { describe, expect, test } from 'vitest'
import { Crash } from '../../world/hub.ts'
import { HANGS, makeImage } from '../../../simulator/firmware/image.ts'
import {
  attempts,
  builds,
  failed,
  GIVEN_UP,
  hubWith,
  hubWithVerdict,
  MINUTE,
  NEW,
  OLD,
  switches,
} from '../support/firmware-bench.ts'

const SILENT =
  'controller bins: firmware 2: the controller has not reported its firmware within 15 minutes after its update'

describe('a verdict about a firmware', () => {
  test('another board on the line begins again, and the other controllers get the image that its former board failed at', () => {
    const bench = hubWithVerdict()
    bench.begin()
    bench.run(15 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([
      OLD,
      ['controller bins: firmware 2: the controller keeps firmware 1'],
    ])
    bench.fault('used_board', 'bins')
    bench.run(10_000)
    bench.core.takeOverController('bins')
    bench.run(5 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([NEW, []])
  })

  test('a verdict does not fail the rollout of a later release with the same image, which the hub tries again once', () => {
    const bench = hubWithVerdict({ rollout: 'first' })
    bench.rollout = 'first'
    bench.begin()
    bench.run(15 * MINUTE)
    expect(bench.firmwareOutcomes.at(-1)).toEqual({ error: GIVEN_UP })
    expect(switches(bench)).toBe(0)
    bench.firmwareOutcomes.length = 0
    bench.rollout = 'second'
    bench.restart()
    bench.run(15 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([NEW, []])
    expect(bench.firmwareOutcomes).toEqual(['pending', 'done'])
  })

  test('an image that fails again in the rollout of a later release keeps its alarm, is tried there once, and does not fail the rollout', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    bench.rollout = 'first'
    bench.restart()
    bench.run(25 * MINUTE)
    expect([switches(bench), bench.firmwareOutcomes.at(-1)]).toEqual([3, { error: GIVEN_UP }])
    for (const rollout of ['second', 'third']) {
      bench.rollout = rollout
      bench.software = `larder-edge ${rollout}`
      bench.firmwareOutcomes.length = 0
      bench.restart()
      bench.run(20 * MINUTE)
      expect([switches(bench), bench.firmwareOutcomes]).toEqual([1, ['pending', 'done']])
      bench.restart()
      bench.run(20 * MINUTE)
      expect([switches(bench), bench.firmwareOutcomes.at(-1)]).toEqual([0, 'done'])
      expect([builds(bench), failed(bench)]).toEqual([OLD, [GIVEN_UP]])
    }
  })

  test('an image that fails again in a later rollout of the same release fails that rollout, too', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    bench.rollout = 'first'
    bench.restart()
    bench.run(25 * MINUTE)
    bench.rollout = 'second'
    bench.restart()
    bench.run(20 * MINUTE)
    expect([switches(bench), bench.firmwareOutcomes.slice(-2)]).toEqual([1, ['pending', { error: GIVEN_UP }]])
    bench.firmwareOutcomes.length = 0
    bench.restart()
    bench.run(20 * MINUTE)
    expect([switches(bench), bench.firmwareOutcomes.at(-1)]).toEqual([0, { error: GIVEN_UP }])
  })

  test('a power cut before the order to run an image leaves the only attempt of a later rollout, for at most three orders', () => {
    const bench = hubWithVerdict({ rollout: 'first' })
    bench.rollout = 'second'
    let cuts = 0
    const cut = (times: number) => (point: string) => {
      if (point !== 'core.before-firmware-USE' || cuts === times) return
      cuts += 1
      throw new Crash(point)
    }
    bench.onCheckpoint = cut(1)
    bench.begin()
    bench.run(15 * MINUTE)
    expect([cuts, bench.alive]).toEqual([1, false])
    bench.begin()
    bench.run(15 * MINUTE)
    expect([switches(bench), builds(bench), failed(bench)]).toEqual([3, NEW, []])
    const other = hubWithVerdict({ rollout: 'first' })
    other.rollout = 'second'
    cuts = 0
    other.onCheckpoint = cut(9)
    for (let life = 0; life < 5; life += 1) {
      if (!other.alive) other.begin()
      other.run(15 * MINUTE)
    }
    expect([cuts, other.alive, failed(other)]).toEqual([3, true, [GIVEN_UP]])
  })

  test('a line that is lost before the order to run an image keeps the rollout pending until the controller has returned', () => {
    const bench = hubWith()
    for (const id of ['vending', 'cold']) bench.room.power('off', id)
    const blocks = () => bench.passed.filter((point) => point === 'core.before-firmware-BLK').length
    expect(bench.runUntil(() => blocks() > 1, 15 * MINUTE)).toBe(true)
    bench.room.power('off', 'bins')
    bench.run(1000)
    bench.room.power('on', 'bins')
    bench.run(5 * MINUTE)
    expect([builds(bench)[0], bench.firmwareOutcomes]).toEqual(['2 kept', ['pending', 'done']])
  })

  test('a controller that does not return after its line was lost is awaited for ten minutes', () => {
    const bench = hubWith()
    for (const id of ['vending', 'cold']) bench.room.power('off', id)
    expect(bench.runUntil(() => bench.passed.includes('core.before-firmware-BLK'), 15 * MINUTE)).toBe(true)
    bench.room.power('off', 'bins')
    bench.run(9 * MINUTE)
    expect(bench.firmwareOutcomes).toEqual(['pending'])
    bench.run(2 * MINUTE)
    expect(bench.firmwareOutcomes).toEqual(['pending', 'done'])
  })

  test('a line that flaps before its controller reports its firmware holds the rollout for ten minutes, not longer', () => {
    const bench = hubWith()
    for (const id of ['vending', 'cold']) bench.room.power('off', id)
    expect(bench.runUntil(() => bench.passed.includes('core.before-firmware-BLK'), 15 * MINUTE)).toBe(true)
    bench.room.power('off', 'bins')
    for (let flap = 0; flap < 40; flap += 1) {
      bench.run(25_000)
      bench.room.power('on', 'bins')
      bench.run(3000)
      bench.room.power('off', 'bins')
    }
    expect(bench.firmwareOutcomes.slice(0, 2)).toEqual(['pending', 'done'])
  })

  test('the time in which the process of the hub does not run is no silence of a controller', () => {
    const bench = hubWith()
    expect(bench.runUntil(() => switches(bench) === 1, 60 * MINUTE)).toBe(true)
    bench.suspend(60 * MINUTE)
    bench.run(1000)
    expect(failed(bench)).toEqual([])
    bench.run(20 * MINUTE)
    expect([builds(bench), failed(bench), bench.firmwareOutcomes]).toEqual([NEW, [], ['pending', 'done']])
  })

  test('the verdict of a controller that the hardware description does not contain fails and holds no rollout, and raises no alarm', () => {
    const bench = hubWithVerdict({ rollout: 'first' }, 'removed')
    bench.rollout = 'first'
    bench.begin()
    bench.run(15 * MINUTE)
    expect([builds(bench), failed(bench), bench.firmwareOutcomes.at(-1)]).toEqual([NEW, [], 'done'])
  })

  test('the verdict of an earlier program, without a board, belongs to the board that connects first and to no rollout', () => {
    const bench = hubWithVerdict({ memory: undefined })
    bench.begin()
    bench.run(15 * MINUTE)
    expect([builds(bench), failed(bench), bench.firmwareOutcomes.at(-1)]).toEqual([OLD, [GIVEN_UP], 'done'])
    bench.fault('used_board', 'bins')
    bench.run(10_000)
    bench.core.takeOverController('bins')
    bench.run(5 * MINUTE)
    expect([builds(bench), failed(bench)]).toEqual([NEW, []])
    const other = hubWithVerdict({ memory: undefined })
    other.rollout = 'first'
    other.begin()
    other.run(15 * MINUTE)
    expect([builds(other), failed(other), other.firmwareOutcomes.at(-1)]).toEqual([NEW, [], 'done'])
  })

  test('an image that renews the memory id of its board is given up after the same number of attempts', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    const tries = (): number => Number(/"bins":[^}]*"tries":(\d+)/.exec(attempts(bench))?.[1] ?? 0)
    for (let known = 1; bench.runUntil(() => tries() === known, 60 * MINUTE); known += 1) {
      bench.run(1000)
      bench.fault('memory_loss', 'bins')
    }
    expect([tries(), builds(bench), failed(bench)]).toEqual([3, OLD, [GIVEN_UP]])
  })

  test('the verdicts of three boards end the attempts of an image at a controller', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    for (let board = 0; board < 5; board += 1) {
      bench.run(30 * MINUTE)
      expect(failed(bench)).toEqual([GIVEN_UP])
      bench.fault('used_board', 'bins')
      bench.run(10_000)
      bench.core.takeOverController('bins')
    }
    expect(switches(bench)).toBe(9)
  })

  test('a controller that is silent after its update fails the rollout after 15 minutes, and is not tried while it is silent', () => {
    const bench = hubWith()
    expect(bench.runUntil(() => switches(bench) === 1, 60 * MINUTE)).toBe(true)
    bench.room.power('off', 'bins')
    bench.run(10 * MINUTE)
    expect([failed(bench), bench.firmwareOutcomes]).toEqual([[], ['pending']])
    bench.run(6 * MINUTE)
    expect(failed(bench)).toEqual([SILENT])
    expect(bench.firmwareOutcomes).toEqual(['pending', { error: SILENT }])
    bench.restart()
    bench.run(40 * MINUTE)
    expect([switches(bench), failed(bench), builds(bench).slice(1)]).toEqual([0, [SILENT], OLD.slice(1)])
    bench.room.power('on', 'bins')
    bench.run(5 * MINUTE)
    expect([builds(bench), failed(bench), bench.firmwareOutcomes.at(-1)]).toEqual([NEW, [], 'done'])
  })

  test('a hub that starts after its controller became silent reports it after 15 minutes, too', () => {
    const bench = hubWithVerdict({ error: null, tries: 1, isOrdered: true })
    bench.room.power('off', 'bins')
    bench.begin()
    bench.run(14 * MINUTE)
    expect(failed(bench)).toEqual([])
    bench.run(2 * MINUTE)
    expect([failed(bench), bench.firmwareOutcomes.at(-1)]).toEqual([[SILENT], { error: SILENT }])
  })

  test('a controller that has reported after its update is not silent when it is unplugged later, and holds no other controller', () => {
    const bench = hubWith(makeImage({ build: 2 }, HANGS))
    expect(bench.runUntil(() => switches(bench) === 1, 60 * MINUTE)).toBe(true)
    expect(bench.runUntil(() => !attempts(bench).includes('isOrdered'), 10 * MINUTE)).toBe(true)
    bench.room.power('off', 'bins')
    bench.run(40 * MINUTE)
    expect(failed(bench)).toEqual(['controller vending: firmware 2: the controller keeps firmware 1'])
  })

  test('a controller that cannot store an image is given up after three attempts, and is not silent although it has reported its firmware long before', () => {
    const bench = hubWith()
    const image = bench.images[0]!
    const readable = { ...image }
    Object.assign(image, { read: () => undefined })
    bench.run(20 * MINUTE)
    Object.assign(image, readable)
    bench.fault('flash_fault', 'bins')
    bench.run(40 * MINUTE)
    expect([switches(bench), builds(bench)[0], failed(bench)]).toEqual([0, '1 kept', [GIVEN_UP]])
  })

  test('a controller that returns after each silent update is given up after the third one', () => {
    const bench = hubWith()
    for (let round = 1; round <= 5; round += 1) {
      if (!bench.runUntil(() => switches(bench) === round, 20 * MINUTE)) break
      bench.room.power('off', 'bins')
      bench.run(16 * MINUTE)
      expect(failed(bench)).toEqual([SILENT])
      bench.room.power('on', 'bins')
    }
    expect([switches(bench), failed(bench)]).toEqual([3, [SILENT]])
  })
})
