import * as files from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../protocol/model/make-folder.ts'
import { noCheckpoint } from '../protocol/model/checkpoint.ts'
import type { Runtime } from '../protocol/model/runtime.ts'
import type { EdgeConfig } from './config.ts'
import { openSerialPort } from './hardware/serialport-line-port.ts'
import { createHub, type Hub, type HubOptions } from './hub.ts'
import { ofStorage } from './journal/storage-error.ts'
import { lockStore, type StoreLock } from './journal/store-lock.ts'
import { openStore, type Store } from './journal/store.ts'
import type { createRecent } from './recent.ts'
import type { Running } from './runner.ts'

export interface OpenHub extends Running {
  hub: Hub
  store: Store
}

/** The options of the hub that do not follow from its configuration. */
interface Parts extends Pick<
  HubOptions,
  | 'runtime'
  | 'log'
  | 'gpio'
  | 'openTransport'
  | 'software'
  | 'lastError'
  | 'certificates'
  | 'desired'
  | 'trial'
  | 'isStart'
  | 'board'
  | 'images'
> {
  recent: Pick<ReturnType<typeof createRecent>, 'port'>
  /** The journal's lock, if this process has it already. */
  held: StoreLock | undefined
}

/**
 * Locks the journal for this process. Throws a `StorageError` if the storage cannot be used, or a readable
 * error if another service has the journal.
 */
export function lockJournal(path: string, { clock }: Runtime): StoreLock {
  return ofStorage(path, () => {
    makeFolder(files, dirname(path))
    return lockStore(path, { pid: process.pid, since: new Date(clock.now()).toISOString() })
  })
}

/** Opens the journal and starts the hub on it. Throws a `StorageError` if the storage cannot be used. */
export function openHub(config: EdgeConfig, parts: Parts): OpenHub {
  const { recent, held, ...options } = parts
  const { log } = options
  const { hardware, store: path } = config
  const lock = held ?? lockJournal(path, options.runtime)
  let store: Store | undefined
  let hub: Hub | undefined
  function end(): void {
    try {
      hub?.stop()
    } catch (error) {
      // The next start completes it, as after a crash.
      log.warn({ error: String(error) }, 'the hub could not be stopped in good order')
    }
    store?.close()
    lock.release()
  }
  try {
    return ofStorage(path, () => {
      store = openStore({
        path,
        cacheKb: config.storeCacheKb,
        maxBytes: config.storeMaxMb * 1024 * 1024,
        hubId: hardware.hubId,
        checkpoint: noCheckpoint,
        log,
      })
      const opened = store
      hub = createHub({
        ...options,
        store,
        hardware,
        openPort: recent.port(openSerialPort),
        checkpoint: noCheckpoint,
        settings: config.hub,
        description: config.description,
        formerHubId: config.formerHubId,
        canMove: config.canMove,
      })
      hub.start()
      return { hub, store, onLost: (listener) => opened.onLost(listener), stop: end }
    })
  } catch (error) {
    end()
    throw error
  }
}

/** Reading speed of a slow card, for the check of the whole journal. */
const SLOW_BYTES_PER_MS = 2000

/** Milliseconds that the check of the journal may take on a slow card. */
export function checkingMs(path: string): number {
  try {
    return files.statSync(path).size / SLOW_BYTES_PER_MS
  } catch {
    return 0
  }
}
