import { Download } from 'lucide'
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { textAtHub } from '../model/alarms.ts'
import { Icon } from './icon.tsx'
import { saveText } from './save-text.ts'

/** A record of a hub's log. */
export interface LogRecord {
  /** Milliseconds since the Unix epoch. */
  at: number
  level: string
  message: string
  fields: Readonly<Record<string, unknown>>
}

/** A line of a log as people read it. */
export interface LogLine {
  at: number
  /** The level of a record, or the controller of a serial line. */
  mark: string
  class: string
  /** The main text for people. */
  text: string
  /** The line as in the log; empty if `text` contains all of it. */
  raw: string
}

const colours: Readonly<Record<string, string>> = { error: 'bad', warn: 'text-warning-content bg-warning/30' }
const levels = { all: [], warn: ['warn', 'error'], error: ['error'] } as const
export type LeastLevel = keyof typeof levels

/** Maximum number of lines that a telephone draws quickly; the filters find the others. */
const SHOWN = 200

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const sentenceOf = (message: string): string => `${(message[0] ?? '').toUpperCase()}${message.slice(1)}`

/** The lines of the records with at least a level. An alarm has a sentence of its own. */
export function logLines(records: readonly LogRecord[], least: LeastLevel): LogLine[] {
  const wanted: readonly string[] = levels[least]
  return records
    .filter(({ level }) => wanted.length === 0 || wanted.includes(level))
    .map(({ at, level, message, fields }) => {
      const more = JSON.stringify(fields)
      const { code, subject, detail } = fields
      const isAlarm = message === 'alarm' && typeof code === 'string'
      return {
        at,
        mark: level,
        class: colours[level] ?? '',
        text: isAlarm ? textAtHub(code, textOf(subject), textOf(detail)).title : sentenceOf(message),
        raw: more === '{}' ? '' : `${message} ${more}`,
      }
    })
}

const linesWith = (lines: readonly LogLine[], sought: string): LogLine[] =>
  lines.filter(({ mark, text, raw }) => `${mark} ${text} ${raw}`.toLowerCase().includes(sought.toLowerCase()))

/** The lines as a text file, for example for support. */
const textOfLines = (lines: readonly LogLine[]): string =>
  lines.map(({ at, mark, text, raw }) => `${new Date(at).toISOString()} ${mark} ${raw || text}\n`).join('')

const LevelSelect = (props: { value: LeastLevel; onPick: (level: LeastLevel) => void }): JSX.Element => (
  <select
    class="select select-sm w-auto"
    aria-label="Level"
    value={props.value}
    onChange={(event) => props.onPick(event.currentTarget.value as LeastLevel)}
  >
    <option value="all">All levels</option>
    <option value="warn">Warnings and errors</option>
    <option value="error">Errors</option>
  </select>
)

const clockTime = (at: number): string =>
  new Date(at).toLocaleTimeString([], { hour12: false }) + `.${String(at % 1000).padStart(3, '0')}`

interface ListProps {
  lines: readonly LogLine[]
  name: string
  /** Of the texts. */
  class?: string
  /** A time as the page shows it. */
  time?: (at: number) => string
}

interface ViewProps extends ListProps {
  /** Name of the downloaded file. */
  file: string
  /** Absent: the lines have no levels. */
  level?: { value: LeastLevel; onPick: (level: LeastLevel) => void }
  /** Buttons before the others. */
  children?: ComponentChildren
}

/** Lines of a log with a choice of level, a search, and a download of what is shown. */
export function LogView({ lines, file, level, children, ...list }: ViewProps): JSX.Element {
  const [sought, setSought] = useState('')
  const found = linesWith(lines, sought)
  return (
    <div class="grid gap-2 min-w-0">
      <div class="flex flex-wrap gap-2">
        {children}
        {level && <LevelSelect {...level} />}
        <button class="btn btn-sm" onClick={() => saveText(textOfLines(found), file, 'text/plain')}>
          <Icon icon={Download} /> Download
        </button>
        <input
          class="input input-sm grow"
          type="search"
          aria-label="Only lines with"
          placeholder="Only lines with …"
          value={sought}
          onInput={(event) => setSought(event.currentTarget.value)}
        />
      </div>
      <LogList {...list} lines={found} />
    </div>
  )
}

/** Lines of a log, the newest first. */
const LogList = ({ lines, name, class: look = '', time = clockTime }: ListProps): JSX.Element => (
  <>
    <ol
      class="max-h-96 overflow-y-auto text-sm grid gap-1"
      tabindex={0}
      aria-label={`${name}, the newest first`}
      data-recent={name.toLowerCase()}
    >
      {lines
        .slice(-SHOWN)
        .toReversed()
        .map(({ at, mark, class: colour, text, raw }, index) => (
          <li key={`${at} ${index}`} class="break-words border-b border-base-300">
            <span class={look}>{text}</span>{' '}
            <span class="quiet text-xs whitespace-nowrap">
              {time(at)} <b class={colour}>{mark}</b>
            </span>
            {raw !== '' && (
              <details>
                <summary class="quiet cursor-pointer w-fit pr-6 touch text-xs">Details</summary>
                <span class="font-mono text-xs break-all">{raw}</span>
              </details>
            )}
          </li>
        ))}
      {lines.length === 0 && <li class="quiet">Nothing.</li>}
    </ol>
    {lines.length > SHOWN && (
      <p class="quiet text-sm">
        The newest {SHOWN} of {lines.length}.
      </p>
    )}
  </>
)
