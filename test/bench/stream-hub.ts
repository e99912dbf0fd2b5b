import { createInbox } from '../../edge/journal/inbox.ts'
import { createOutbox } from '../../edge/journal/outbox.ts'
import { openStore } from '../../edge/journal/store.ts'
import { mqttTransport } from '../../edge/sync/mqtt-transport.ts'
import { defaultSyncSettings } from '../../edge/limits.ts'
import { Sync } from '../../edge/sync/sync.ts'
import type { SyncCore } from '../../edge/sync/session.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { stockEntry } from './stream-entries.ts'

/**
 * The hub's process of `stream.ts`: collects entries in a journal on the disk, and sends them to the cloud on
 * request. Arguments: the journal's path, the number of entries, and the number per commit.
 */
const [path, countText, perCommitText] = process.argv.slice(2)
const count = Number(countText)
const perCommit = Number(perCommitText)
const runtime = systemRuntime()
const { clock } = runtime
const store = openStore({ path: path!, checkpoint: noCheckpoint, log: silentLog })
const outbox = createOutbox(store, runtime)
const inbox = createInbox(store, runtime, silentLog)

const collectedFrom = clock.monotonic()
for (let n = 0; n < count; n += perCommit)
  store.transact(() => {
    for (let k = n; k < Math.min(n + perCommit, count); k++) outbox.append('ledger', stockEntry(k, runtime))
  })
process.send!({ collectedMs: clock.monotonic() - collectedFrom })

/** A core that accepts the cloud's messages without any work. */
const core: SyncCore = {
  applyCloudEntry() {},
  execute() {},
  health: () => ({ accepting_orders: true, bins: [], fridges: [], doors: [], unknown_operations: 0 }),
  onHealthChange() {},
  setCloudClock() {},
  restartLedger() {
    throw new Error('the cloud does not know this ledger')
  },
}

process.once('message', (message) => {
  const { url, password } = message as { url: string; password: string }
  const startedMs = clock.monotonic()
  const cpu = process.cpuUsage()
  const sync = new Sync({
    runtime,
    log: { ...silentLog, warn: console.warn, error: console.error },
    hubId: 1,
    openTransport: mqttTransport({ urls: [url], user: 'hub-1', password, runtime }),
    outbox,
    inbox,
    core,
    software: 'bench',
    checkpoint: noCheckpoint,
    settings: defaultSyncSettings,
  })
  sync.start()
  const watch = (): void => {
    const { base, last } = outbox.position('ledger')
    if (base < last) return void clock.after(2, watch)
    const { user, system } = process.cpuUsage(cpu)
    process.send!({ drainedMs: clock.monotonic() - startedMs, cpuMs: (user + system) / 1000 })
    sync.stop()
    process.disconnect()
  }
  watch()
})
