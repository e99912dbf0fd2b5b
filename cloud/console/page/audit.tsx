import { Search } from 'lucide'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditRecord } from '../../../protocol/contract/owner-reports.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { address, setQuery } from './address.ts'
import { useData } from './data.ts'
import { time, words } from './format.ts'
import { useZone } from './hubs.ts'
import { useActorName } from './names.ts'
import { Card, ExportButton, Heading, HubSelect, Input, Loaded, Nothing, ZoneNote } from './parts.tsx'
import { all, csv } from './session.ts'

const PAGE = 50
const fields = [
  ['actor', 'Who', 'search', 'key:A1b2C3d4'],
  ['action', 'What', 'search', 'controls.open_bin'],
  ['object', 'To what', 'search', 'bin-2'],
  ['from', 'From', 'date', undefined],
  ['to', 'To', 'date', undefined],
] as const

/** Acts of people and programs, newest first. */
export function AuditPage(): JSX.Element {
  const { query: given } = address.value
  const [most, setMost] = useState(PAGE)
  const hub = Number(given.get('hub')) || undefined
  const zone = useZone(hub)
  const filter = Object.fromEntries(
    fields.flatMap(([name]) => (given.get(name) ? [[name, given.get(name)!]] : [])),
  )
  const query = { ...(hub !== undefined && { hub_id: hub }), ...filter }
  const found = useData(
    () => all('GET /owners/audit', { query: { ...query, limit: PAGE } }, most),
    [query, most],
  )
  return (
    <>
      <Heading text="Audit">
        <ExportButton read={() => csv('GET /owners/audit', { query })} file="audit.csv" />
      </Heading>
      <Card class="mb-3">
        <form
          class="grid gap-2 grid-cols-2 md:grid-cols-3 xl:grid-cols-7 items-end"
          onSubmit={(event) => setQuery(textsOf(event))}
        >
          <HubSelect value={hub} all="All hubs" />
          {fields.map(([name, label, type, example]) => (
            <Input
              key={name}
              label={label}
              name={name}
              type={type as 'search'}
              placeholder={example}
              defaultValue={given.get(name) ?? ''}
            />
          ))}
          <button class="btn btn-primary">
            <Icon icon={Search} /> Find
          </button>
        </form>
      </Card>
      <Loaded of={found}>
        {(records) => (
          <Card name="audit">
            {records.length === 0 ? <Nothing>No record matches.</Nothing> : <ZoneNote zone={zone} />}
            <ul>
              {records.map((record) => (
                <Line key={record.id} record={record} zone={zone} />
              ))}
            </ul>
            {records.length >= most && (
              <button class="btn btn-sm mt-3" onClick={() => setMost(most + PAGE)}>
                Show more
              </button>
            )}
          </Card>
        )}
      </Loaded>
    </>
  )
}

/** `{before: 3, after: 12}` → `before 3, after 12`. */
const detailOf = (detail: Readonly<Record<string, unknown>>): string =>
  Object.entries(detail)
    .map(([name, value]) => `${words(name)} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')

function Line({ record, zone }: { record: AuditRecord; zone: string | undefined }): JSX.Element {
  const { at, actor, action, hub_id, object, result, detail } = record
  const nameOf = useActorName()
  return (
    <li class="border-b border-base-300 py-2 text-sm grid gap-x-3 sm:grid-cols-[11rem_14rem_1fr]">
      <span class="quiet">{time(at, zone)}</span>
      <span>
        <button
          class="link break-all text-left touch"
          aria-label={`Only acts of ${nameOf(actor)}`}
          onClick={() => setQuery({ actor })}
        >
          {nameOf(actor)}
        </button>
      </span>
      <span class="min-w-0 break-words">
        <b>{words(action)}</b> {object}
        {hub_id !== null && ` at hub ${hub_id}`}
        {result !== 'executed' && <span class="bad"> {result}</span>}
        {Object.keys(detail).length > 0 && <span class="quiet"> {detailOf(detail)}</span>}
      </span>
    </li>
  )
}
