import { makeImage } from '../../../simulator/firmware/image.ts'
import { firmwareOf, imageOf } from '../../world/firmware.ts'
import { TestHub } from '../../world/hub.ts'

export const MINUTE = 60_000
export const CONTROLLERS = ['bins', 'vending', 'cold'] as const
export const OLD = CONTROLLERS.map(() => '1 kept')
export const NEW = CONTROLLERS.map(() => '2 kept')
export const program = 'a program of several blocks '.repeat(40)

const MEMORY = "SELECT memory_id FROM controllers WHERE id = 'bins'"
export const GIVEN_UP = 'controller bins: firmware 2: the controller keeps firmware 1'

/** The hub that gave its image up at controller `bins`; its next life has the verdict with `more`. */
export function hubWithVerdict(more: object = {}, id = 'bins'): TestHub {
  const bench = hubWith()
  const [memory] = bench.journal.prepare<[], string>(MEMORY).pluck().all()
  const { kind, build, sum } = bench.images[0]!
  const verdict = { kind, build, sum, memory, tries: 3, error: 'the controller keeps firmware 1', ...more }
  bench.kill()
  bench.journal
    .prepare("INSERT OR REPLACE INTO meta VALUES ('firmware', ?)")
    .run(JSON.stringify({ [id]: verdict }))
  bench.firmwareOutcomes.length = 0
  return bench
}

export const attempts = (bench: TestHub): string =>
  bench.journal.prepare<[], string>("SELECT value FROM meta WHERE key = 'firmware'").pluck().get() ?? '{}'

/** How often the hub has ordered a controller to run an image, in this life. */
export const switches = (bench: TestHub): number =>
  bench.passed.filter((point) => point === 'core.before-firmware-USE').length

/** A hub that has an image and has connected, ten minutes before its first transfer. */
export function hubWith(bytes = makeImage({ build: 2 }, program)): TestHub {
  const bench = new TestHub()
  bench.images = [imageOf(bytes)]
  bench.begin()
  bench.apply(bench.snapshot())
  bench.run(2000)
  return bench
}

/** The firmware that each controller runs, by the simulator. */
export const builds = (bench: TestHub): string[] =>
  CONTROLLERS.map((id) => firmwareOf(bench.room.controllers.get(id)!))

export const failed = (bench: TestHub): string[] =>
  bench.core
    .alarms()
    .filter(({ code }) => code === 'update_failed')
    .map(({ subject, detail }) => `${subject}: ${detail}`)
