import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { migrations } from '../../../edge/journal/migrations.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'
import { COPY, type Step, updateFiles } from '../../../edge/update/files.ts'
import { TRIAL_CHECK_MS, UpdateTrial } from '../../../edge/update/trial.ts'
import { NEW, OLD, releaseOf } from '../../world/update-board.ts'

const CONFIRM_MS = 300_000
const to = releaseOf(NEW)
const steps = {
  idle: { step: 'idle' },
  waiting: { step: 'waiting', to },
  switching: { step: 'switching', to, from: OLD },
  confirming: { step: 'confirming', to, from: OLD, starts: 0, absent: [] },
  returning: { step: 'returning', to, from: OLD, error: 'an error' },
} as const satisfies Record<string, Step>

/** A board whose updater has copied a journal with this version of the tables. */
function board(tables: number) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-trial-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  const { releases, state } = updateFiles(store)
  mkdirSync(releases)
  const copy = new Sqlite(join(releases, COPY))
  copy.pragma(`user_version = ${tables}`)
  copy.close()
  return {
    write: (now: Step) => writeFileSync(state, JSON.stringify({ now, last: null })),
    damage: () => writeFileSync(state, '\0\0\0'),
    start: () => new UpdateTrial(store, CONFIRM_MS),
  }
}

test.each([
  ['idle', false],
  ['waiting', false],
  ['switching', false],
  ['confirming', true],
  ['returning', true],
] as const)(
  'a start on a migrated journal is a trial during the step %s of the updater: %s',
  (step, isOn) => {
    const { write, start } = board(migrations.length - 1)
    write(steps[step])
    expect(start().isOn()).toBe(isOn)
  },
)

test('a version that has not changed the tables works at once, because its journal stays', () => {
  const { write, start } = board(migrations.length)
  write(steps.confirming)
  expect(start().isOn()).toBe(false)
})

test('a trial ends with the verdict of the updater, and begins again after a power failure before it', () => {
  const { write, start } = board(migrations.length - 1)
  write(steps.confirming)
  expect(start().check()).toBe(true)
  const trial = start()
  expect([trial.check(), trial.check(), trial.isOn()]).toEqual([true, true, true])
  write(steps.idle)
  expect([trial.isOn(), trial.check(), trial.isOn()]).toEqual([true, false, false])
  expect(start().isOn()).toBe(false)
})

test('a damaged record of the updater ends the trial: no way back remains', () => {
  const { write, damage, start } = board(migrations.length - 1)
  write(steps.confirming)
  const trial = start()
  damage()
  expect(trial.check()).toBe(false)
})

test('a hub sells again if its updater does not decide in four times the time of a trial', () => {
  const { write, start } = board(migrations.length - 1)
  write(steps.confirming)
  const trial = start()
  let checks = 1
  while (trial.check()) checks += 1
  expect(checks * TRIAL_CHECK_MS).toBe(4 * CONFIRM_MS)
})
