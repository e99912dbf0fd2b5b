import type { Log } from '../../protocol/model/log.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import type { UpdateState } from './files.ts'

interface Disk {
  log: Log
  /** Durable. */
  state: { read(): UpdateState; write(state: UpdateState): void }
  /** Releases the space that is reserved for a full disk. */
  makeRoom(): void
}

/**
 * The progress of an update. A full disk must not prevent the way back: this process remembers a step that the disk did not
 * store, so no later attempt repeats it.
 */
export class Progress {
  readonly #disk: Disk
  #unstored: UpdateState | undefined

  constructor(disk: Disk) {
    this.#disk = disk
  }

  read(): UpdateState {
    return this.#unstored ?? this.#disk.state.read()
  }

  /** Stores a step that leads to another version. Throws if it is not durable, and the step must not happen then. */
  begin(state: UpdateState): void {
    this.#disk.state.write(state)
    this.#unstored = undefined
  }

  /** Stores a step that leads back, or an end. Throws if it is not durable, but it holds for this process. */
  keep(state: UpdateState): void {
    this.#unstored = state
    try {
      this.begin(state)
    } catch {
      this.#disk.makeRoom()
      this.begin(state)
    }
  }

  /** As `keep`, for a step that must happen even if it is not durable. */
  note(state: UpdateState): void {
    try {
      this.keep(state)
    } catch (error) {
      this.#disk.log.warn({ error: problemOf(error) }, 'the progress of the update cannot be stored')
    }
  }

  /** Stores the step that the disk did not store. */
  catchUp(): void {
    if (this.#unstored) this.note(this.#unstored)
  }
}
