import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { migrations } from '../journal/migrations.ts'
import { syncFolder } from './durable.ts'
import { COPY, IDLE, MAX_STARTS, readJson, updateFiles, UpdateState } from './files.ts'
import { versionOf } from './journal-file.ts'

/** Milliseconds between two checks. */
export const TRIAL_CHECK_MS = 1000

/**
 * Whether the running version is on trial on a journal that it has migrated. If the updater gives the version up, the journal
 * from before the switch returns. So during the trial the hub moves nothing, takes no action of a person or the cloud, and
 * exchanges no entries: the former journal then misses nothing. If the tables are unchanged, the present journal stays, and
 * the hub works at once.
 */
export class UpdateTrial {
  readonly #state: string
  #checksLeft: number
  #isOn: boolean

  /** `confirmMs`: UPDATE_CONFIRM_MS. `tables`: the version of the journal's tables in this version of the service. */
  constructor(store: string, confirmMs: number, tables = migrations.length) {
    const { state, releases } = updateFiles(store)
    const copy = join(releases, COPY)
    this.#state = state
    // An updater that works has decided earlier. Counted in checks, so that a suspension is no time.
    this.#checksLeft = ((MAX_STARTS + 1) * confirmMs) / TRIAL_CHECK_MS
    this.#isOn = existsSync(copy) && versionOf(copy) !== tables && this.#isUndecided()
  }

  isOn(): boolean {
    return this.#isOn
  }

  /** Reads the progress of the updater, every `TRIAL_CHECK_MS`. Returns whether the trial continues. */
  check(): boolean {
    this.#checksLeft -= 1
    this.#isOn &&= this.#checksLeft > 0 && this.#isUndecided()
    return this.#isOn
  }

  #isUndecided(): boolean {
    try {
      const { step } = (readJson(this.#state, UpdateState) ?? IDLE).now
      if (step === 'confirming' || step === 'returning') return true
      // The updater may not have synced the end yet, and a power failure would undo it.
      syncFolder(dirname(this.#state))
      return false
    } catch {
      // The card fails.
      return true
    }
  }
}
