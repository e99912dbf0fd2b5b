import { healthy } from './health.ts'
import type { Inbox } from '../../edge/journal/inbox.ts'
import type { Outbox, OutboxStream } from '../../edge/journal/outbox.ts'
import { defaultSyncSettings, type SyncSettings } from '../../protocol/settings/hub-limits.ts'
import { Sync } from '../../edge/sync/sync.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type { ReceiverPosition } from '../../protocol/mqtt/session.ts'
import type { OpenTransport } from '../../protocol/mqtt/transport.ts'
import { judgeBatch, judgeEpoch } from '../../protocol/stream/receiver.ts'

/** The hub's end of the line without the hub: the real sync with an outbox and an inbox in memory. */
export interface MemoryHub {
  hubId: number
  sync: Sync
  /** Number of entries that the cloud has not acknowledged. */
  pending(): number
  report(...bodies: object[]): void
  /** Ids of executed commands, once per execution. */
  executed: readonly string[]
}

interface MemoryHubOptions {
  hubId: number
  runtime: Runtime
  openTransport: OpenTransport
  settings?: SyncSettings
}

const health: HubHealth = {
  ...healthy,
  fridges: [{ fridge_number: 1, enabled: true, status: 'healthy', temperature: 3.5, shutoff: false }],
  doors: [{ door: 'main', status: 'locked' }],
}

/** Connects at `sync.start()`. Thousands of them fit into a process. */
export function createMemoryHub(options: MemoryHubOptions): MemoryHub {
  const { hubId, runtime, openTransport, settings = defaultSyncSettings } = options
  const { outbox, append } = createMemoryOutbox(runtime)
  const executed: string[] = []
  const sync = new Sync({
    runtime,
    log: silentLog,
    hubId,
    openTransport,
    outbox,
    inbox: createMemoryInbox(),
    core: {
      applyCloudEntry() {},
      execute({ command_id, session }, reply) {
        executed.push(command_id)
        reply({ command_id, session, outcome: 'executed', reason: null, data: {} })
      },
      health: () => health,
      onHealthChange() {},
      setCloudClock() {},
      restartLedger() {
        outbox.newEpoch('ledger')
        return true
      },
    },
    software: 'memory',
    checkpoint: noCheckpoint,
    settings,
  })
  return {
    hubId,
    sync,
    pending() {
      const { base, last } = outbox.position('ledger')
      return last - base
    },
    report: append,
    executed,
  }
}

function createMemoryOutbox(runtime: Runtime): { outbox: Outbox; append: (...bodies: object[]) => void } {
  const listeners: ((stream: OutboxStream) => void)[] = []
  const fresh = () => ({
    epoch: randomHex(runtime.random, 16),
    base: 0,
    baseTag: 0,
    entries: [] as { tag: number; body: string }[],
  })
  const streams = { ledger: fresh(), telemetry: fresh() }
  const tell = (stream: OutboxStream): void => {
    for (const listener of listeners) listener(stream)
  }
  const position: Outbox['position'] = (stream) => {
    const { epoch, base, baseTag, entries } = streams[stream]
    return { epoch, base, baseTag, last: base + entries.length }
  }
  const tagAt: Outbox['tagAt'] = (stream, seq) => {
    const { base, baseTag, entries } = streams[stream]
    return seq === base ? baseTag : entries[seq - base - 1]?.tag
  }
  function append(...bodies: object[]): void {
    for (const body of bodies)
      streams.ledger.entries.push({
        tag: Math.floor(runtime.random.fraction() * 2 ** 32),
        body: JSON.stringify(body),
      })
    tell('ledger')
  }
  const outbox: Outbox = {
    append: (_: OutboxStream, body: object) => append(body),
    position,
    read(stream, first, count) {
      const { base, entries } = streams[stream]
      const from = first - base - 1
      return {
        entries: entries.slice(from, from + count),
        previousTag: tagAt(stream, first - 1) ?? 0,
        oldest: base + 1,
      }
    },
    tagAt,
    forget(stream, through) {
      const kept = streams[stream]
      const baseTag = tagAt(stream, through)
      if (through <= kept.base || baseTag === undefined) return
      streams[stream] = { ...kept, base: through, baseTag, entries: kept.entries.slice(through - kept.base) }
    },
    newEpoch(stream) {
      streams[stream] = { ...fresh(), entries: streams[stream].entries }
      tell(stream)
    },
    waitingDrops: () => new Set(),
    knownEpochs: () => [streams.ledger.epoch],
    disown() {},
    isLedgerFull: () => false,
    onAppended: (listener) => void listeners.push(listener),
    redate() {},
    flush() {},
  }
  return { outbox, append }
}

function createMemoryInbox(): Inbox {
  let at: ReceiverPosition = { epoch: null, cursor: 0, tag: 0 }
  const left = new Set<string>()
  return {
    position: () => at,
    receive(batch) {
      const head = { ...batch, tags: batch.entries.map(({ tag }) => tag) }
      const verdict = judgeBatch(at, head, { lossy: false })
      if (verdict.kind === 'apply') at = verdict.next
      return verdict.kind
    },
    takeUp(epoch) {
      const judged = judgeEpoch(at.epoch, epoch, (other) => left.has(other))
      if (judged === 'new') {
        if (at.epoch !== null) left.add(at.epoch)
        at = { epoch, cursor: 0, tag: 0 }
      }
      return judged
    },
    reset() {
      at = { epoch: null, cursor: 0, tag: 0 }
    },
    takeOverLetters() {},
    deadLetters: () => [],
  }
}
