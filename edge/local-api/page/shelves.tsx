import { Minus, Plus, Undo2 } from 'lucide'
import type { JSX, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { countProblem } from '../../../protocol/model/counting.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { say } from '../../../protocol/ui/notices.tsx'
import { Commands } from './act-buttons.tsx'
import {
  discardEntry,
  enterUnits,
  type Facing,
  keyOf,
  pending,
  rowKey,
  setTyped,
  typed,
  wantedRow,
} from './counts.ts'
import { findRow, isBarcode } from './find-row.tsx'
import { receivedAt, isConnected, person, state, view } from './store.ts'

/** A shelf unfolds over some frames. Its fields cannot get the focus before they are visible. */
function focusWhenShown(input: HTMLInputElement, frames = 60): void {
  input.focus()
  if (document.activeElement !== input && frames > 0)
    return void requestAnimationFrame(() => focusWhenShown(input, frames - 1))
  input.select()
  input.scrollIntoView({ block: 'center' })
}

/** Opens the next row's field, on this shelf or the next, and moves the focus to it. */
function focusNext(input: HTMLInputElement): void {
  const rows = input.closest('[data-rows]')
  const inputs = [...(rows?.querySelectorAll<HTMLInputElement>('[data-row] input') ?? [])]
  const next = inputs[inputs.indexOf(input) + 1]
  if (next) show(next)
  else input.blur()
}

/** The shelf stays open until a person closes it. */
function show(input: HTMLInputElement): void {
  input.closest('details')?.setAttribute('open', '')
  focusWhenShown(input)
}

const timeOf = (at: number): string => new Date(at).toLocaleTimeString([], { timeStyle: 'short' })

/** A row, to count or to restock. */
export function Row({ facing }: { facing: Facing }): JSX.Element {
  const { location, quantity, capacity } = facing
  const key = keyOf(facing)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (wantedRow.value !== key) return
    wantedRow.value = null
    show(input.current!)
  }, [wantedRow.value])
  const waiting = pending.value.filter((entry) => rowKey(entry.location) === key)
  const unsent = waiting.filter(({ isLate, problem }) => isLate || problem !== null)
  // Sales must not change a number that a person is about to overwrite or confirm.
  const [held, hold] = useState<number>()
  const wanted = typed.value.get(key) ?? held ?? expectedOf(quantity, waiting)
  // An empty field, a negative number or more than the row's capacity is refused and never interpreted as
  // another number.
  const problem = Number.isNaN(wanted) ? 'enter a number' : countProblem(wanted, capacity)
  // Two clicks may come before the page is drawn again, so each starts from the typed number.
  const step = (by: 1 | -1): void => {
    const units = typed.value.get(key) ?? wanted
    const from = Number.isNaN(units) ? quantity : units
    setTyped(key, Math.max(0, Math.min(capacity, from + by)))
  }
  function enter(what: 'count' | 'restock', units: number): void {
    setTyped(key, undefined)
    hold(undefined)
    void enterUnits(what, location, units).then(() => {
      // In a refill the progress line reports each row, and a notice would lie over it.
      if (view.value !== 'refill' && !pending.value.some((entry) => rowKey(entry.location) === key))
        say(`Row ${key}: ${what === 'count' ? 'counted' : 'added'} ${units}.`)
    })
    focusNext(input.current!)
  }
  return (
    <li class="py-2 border-b border-base-300" data-row={key} data-unsent={unsent.length > 0}>
      <Summary facing={facing} />
      <form
        class="grid grid-cols-[auto_minmax(0,1fr)_minmax(0,1fr)] items-center gap-1.5 mt-1 max-w-sm"
        aria-label={`Row ${key}`}
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (problem === undefined) enter('count', wanted)
        }}
        onFocusIn={() => hold(wanted)}
        onFocusOut={({ currentTarget, relatedTarget }) => {
          if (!currentTarget.contains(relatedTarget as Node | null)) hold(undefined)
        }}
      >
        <Units
          name={`Row ${key}`}
          value={wanted}
          capacity={capacity}
          isWrong={problem !== undefined}
          input={input}
          step={step}
          onInput={(units) => setTyped(key, units)}
          onScanned={(barcode) => {
            setTyped(key, undefined)
            findRow(barcode)
          }}
        />
        <EntryButtons facing={facing} wanted={wanted} isWrong={problem !== undefined} enter={enter} />
      </form>
      {/* The line keeps its height when it is empty, so that nothing below moves. */}
      <p class="bad text-sm min-h-5 flex flex-wrap items-center gap-2" data-row-problem>
        {unsent.length > 0 ? <NotSent entries={unsent} /> : problem}
      </p>
    </li>
  )
}

/** Saves a count, a restock, or a full row. */
function EntryButtons(props: {
  facing: Facing
  wanted: number
  isWrong: boolean
  enter: (what: 'count' | 'restock', units: number) => void
}): JSX.Element {
  const { facing, wanted, isWrong, enter } = props
  const { quantity, capacity } = facing
  const key = keyOf(facing)
  const added = wanted - quantity
  return (
    <>
      <button
        class="btn px-1 text-xs"
        disabled={isWrong}
        aria-label={`Save count ${Number.isNaN(wanted) ? '' : wanted} in row ${key}`}
      >
        Save count {Number.isNaN(wanted) ? '' : wanted}
      </button>
      <button
        type="button"
        class="btn px-1 text-xs"
        disabled={isWrong || added <= 0}
        aria-label={`Added ${added > 0 ? added : ''} to row ${key}`}
        onClick={() => enter('restock', added)}
      >
        Added {added > 0 ? added : ''}
      </button>
      {quantity < capacity && (
        <button
          type="button"
          class="btn px-1 text-xs col-span-3"
          aria-label={`Row ${key} is full: ${capacity}`}
          onClick={() => enter('count', capacity)}
        >
          Full: {capacity}
        </button>
      )}
    </>
  )
}

function Summary({ facing }: { facing: Facing }): JSX.Element {
  const { location, product_id, name, quantity, capacity, blocked } = facing
  return (
    <>
      <p class="text-sm">
        <b>Row {location.row}</b> · {name ?? `product ${product_id}`} · {quantity} of {capacity} there
        {!isConnected.value && receivedAt.value !== null && ` at ${timeOf(receivedAt.value)}`}
        {blocked && <span class="bad"> · not for sale: {blocked}</span>}
      </p>
      {/* A unit that falls ends the block. */}
      {blocked && <Commands device={`row-${keyOf(facing)}`} of="rows/" parameters={{ location }} />}
    </>
  )
}

/** The number of units, with buttons for one less and one more. */
function Units(props: {
  name: string
  value: number
  capacity: number
  isWrong: boolean
  input: RefObject<HTMLInputElement | null>
  step: (by: 1 | -1) => void
  onInput: (units: number) => void
  onScanned: (barcode: string) => void
}): JSX.Element {
  const { name, value, capacity, isWrong, input, step, onInput, onScanned } = props
  return (
    <div class="join">
      <button
        type="button"
        class="btn join-item btn-square"
        aria-label={`${name}: one less`}
        onClick={() => step(-1)}
      >
        <Icon icon={Minus} />
      </button>
      <input
        ref={input}
        type="number"
        min="0"
        max={capacity}
        aria-invalid={isWrong}
        inputMode="numeric"
        enterKeyHint="next"
        class="input join-item w-14 px-1 text-center"
        aria-label={`${name}: units`}
        value={Number.isNaN(value) ? '' : value}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onInput={(event) => onInput(event.currentTarget.valueAsNumber)}
        onKeyDown={(event) => {
          // A scanner types into the field that has the focus.
          const { value: text } = event.currentTarget
          if (event.key !== 'Enter' || !isBarcode(text)) return
          event.preventDefault()
          onScanned(text)
        }}
      />
      <button
        type="button"
        class="btn join-item btn-square"
        aria-label={`${name}: one more`}
        onClick={() => step(1)}
      >
        <Icon icon={Plus} />
      </button>
    </div>
  )
}

/** The units in the row after the hub has booked the waiting entries. */
const expectedOf = (quantity: number, waiting: readonly (typeof pending.value)[number][]): number =>
  waiting.reduce((units, entry) => (entry.what === 'count' ? entry.units : units + entry.units), quantity)

function NotSent({ entries }: { entries: readonly (typeof pending.value)[number][] }): JSX.Element {
  const words = entries.map(
    ({ what, units, at, by }) =>
      `${what === 'count' ? 'counted' : 'added'} ${units} at ${timeOf(at)}${by && by !== person.value ? ` by ${by}, who must log in to send it` : ''}`,
  )
  const refused = entries.find(({ problem }) => problem !== null)?.problem
  return (
    <>
      <span>
        {refused === undefined
          ? `Not sent yet: ${words.join(', ')}.`
          : `Not taken: ${words.join(', ')}. ${refused}`}
      </span>
      <button
        type="button"
        class="btn btn-sm"
        aria-label={`Discard the unsent counts of row ${rowKey(entries[0]!.location)}`}
        onClick={() => discardEntry(entries[0]!.location)}
      >
        <Icon icon={Undo2} /> Discard
      </button>
    </>
  )
}

/** Counting and restocking, shelf by shelf. */
export function Shelves({ id }: { id: string }): JSX.Element {
  const cabinet = Number(id.slice('cabinet-'.length))
  const facings = state.value!.stock.filter(({ location }) => location.cabinet === cabinet)
  const shelves = [...new Set(facings.map(({ location }) => location.shelf))].sort(
    (one, other) => one - other,
  )
  if (facings.length === 0) return <p class="quiet">The planogram has nothing in this cabinet.</p>
  return (
    <div class="grid gap-2" data-rows>
      {shelves.map((shelf) => (
        <details key={shelf} class="collapse collapse-arrow border border-base-300" data-shelf={shelf}>
          <summary class="collapse-title font-medium py-3 min-h-0">Shelf {shelf}</summary>
          <ul class="collapse-content">
            {facings
              .filter(({ location }) => location.shelf === shelf)
              .map((facing) => (
                <Row key={keyOf(facing)} facing={facing} />
              ))}
          </ul>
        </details>
      ))}
    </div>
  )
}
