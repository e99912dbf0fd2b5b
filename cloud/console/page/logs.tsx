import { RefreshCw } from 'lucide'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { createClient, unwrap } from '../../../protocol/client/client.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { logLines, LogView, type LeastLevel, type LogRecord } from '../../../protocol/ui/log-lines.tsx'
import { Card } from './parts.tsx'
import { base, send } from './session.ts'

/** The service waits for the hub; a second try would ask the hub again. */
const client = createClient({
  baseUrl: base,
  retry: { tries: 1 },
  timeoutMs: 60_000,
  system: { fetch: send },
})

const ranges = [
  [10, '10 minutes'],
  [60, 'hour'],
  [1440, 'day'],
] as const

const timeOf = (at: number, timeZone: string): string =>
  new Date(at).toLocaleString('en', { dateStyle: 'short', timeStyle: 'medium', hourCycle: 'h23', timeZone })

/** The log of a hub. It is read when a person asks, because each reading goes to the hub and into the audit. */
export function HubLog({ hubId, timezone }: { hubId: number; timezone: string }): JSX.Element {
  const [minutes, setMinutes] = useState(60)
  const [least, setLeast] = useState<LeastLevel>('all')
  const [records, setRecords] = useState<readonly LogRecord[] | string>([])
  const [phase, setPhase] = useState<'unread' | 'reading' | 'read'>('unread')
  async function read(): Promise<void> {
    setPhase('reading')
    try {
      const query = { hub_id: hubId, minutes }
      const { data } = unwrap(await client.call('GET /owners/hubs/logs', { query }))
      setRecords(data.map(({ at, ...record }) => ({ at: Date.parse(at), ...record })))
    } catch (error) {
      setRecords(error instanceof Error ? error.message : String(error))
    }
    setPhase('read')
  }
  return (
    <Card title="Log" name="log">
      <div class="flex flex-wrap gap-2 mb-2">
        <select
          class="select select-sm w-auto"
          aria-label="Range"
          value={minutes}
          onChange={({ currentTarget }) => setMinutes(Number(currentTarget.value))}
        >
          {ranges.map(([count, name]) => (
            <option key={count} value={count}>
              The last {name}
            </option>
          ))}
        </select>
        <button class="btn btn-sm" disabled={phase === 'reading'} onClick={() => void read()}>
          <Icon icon={RefreshCw} /> {phase === 'reading' ? 'Reading …' : 'Read the log'}
        </button>
      </div>
      {typeof records === 'string' && <p role="alert">{records}</p>}
      {phase === 'read' && typeof records !== 'string' && (
        <LogView
          lines={logLines(records, least)}
          name="Log"
          time={(at) => timeOf(at, timezone)}
          file={`hub-${hubId}-log.txt`}
          level={{ value: least, onPick: setLeast }}
        />
      )}
      {phase === 'unread' && (
        <p class="text-sm quiet">The hub sends its newest records. The audit shows who has read them.</p>
      )}
    </Card>
  )
}
