import { signal } from '@preact/signals'
import { X } from 'lucide'
import type { JSX } from 'preact'
import { textsOf } from '../../../protocol/ui/form.ts'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { attempt } from '../../../protocol/ui/notices.tsx'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import { type FaultTarget, type FaultType, faultKinds, faultTypes } from '../../faults/fault-types.ts'
import type { Fault } from '../../faults/faults.ts'
import { ask, hardware, state } from './store.ts'

const wordsOf = (type: string): string => type.replaceAll('_', ' ')

/** The kinds of fault targets that a name fits. */
function kindsOf(id: string): FaultTarget[] {
  const device = /^(bin|cabinet|fridge)-\d+$/.exec(id)?.[1] as FaultTarget | undefined
  if (device) return [device, 'device']
  return hardware.value?.controllers.some((one) => one.id === id) ? ['controller'] : ['door']
}

export const faultsOf = (id: string): FaultType[] =>
  faultTypes.filter((type) => faultKinds[type].targets.some((kind) => kindsOf(id).includes(kind)))

/** The active faults, each with a button that clears it. */
export function ActiveFaults({ faults }: { faults: readonly Fault[] }): JSX.Element {
  return (
    <ul>
      {faults.map(({ id, type, target, remaining_ms, probability }) => (
        <li key={id} class="flex items-center gap-2 py-1 border-b border-base-300 text-sm">
          <span class="grow min-w-0">
            <b>{wordsOf(type)}</b> · {target === null ? 'everything' : nameOf(target)}
            <span class="quiet">
              {' '}
              · {remaining_ms === null ? 'until cleared' : `${Math.ceil(remaining_ms / 1000)} s`}
              {probability < 1 ? `, chance ${probability}` : ''}
            </span>
          </span>
          <button
            class="btn btn-sm"
            aria-label={`Clear ${wordsOf(type)} of ${target ?? 'everything'}`}
            onClick={() => void attempt(`Clear ${wordsOf(type)}`, () => ask('DELETE', `/faults/${id}`))}
          >
            <Icon icon={X} /> Clear
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Raises a fault for one device, or for a selected target. */
export function FaultForm({ target }: { target?: string }): JSX.Element {
  const types = target === undefined ? faultTypes : faultsOf(target)
  const type = chosen.value && types.includes(chosen.value) ? chosen.value : types[0]!
  const kind = faultKinds[type]
  const targets = (state.value ? namesOf() : []).filter((name) =>
    kindsOf(name).some((one) => kind.targets.includes(one)),
  )

  function raise(event: SubmitEvent): void {
    const form = textsOf(event)
    const text = (name: string): string => form[name] ?? ''
    const aim = target ?? text('target')
    const body = {
      type,
      ...(aim !== '' && { target: aim }),
      ...(text('seconds') !== '' && { for_ms: Math.round(Number(text('seconds')) * 1000) }),
      ...(text('probability') !== '' && { probability: Number(text('probability')) }),
    }
    void attempt(`Fault ${wordsOf(type)}`, () => ask('POST', '/faults', body))
  }

  return (
    <form class="grid gap-2" onSubmit={raise}>
      <label class="grid gap-1 text-sm">
        What goes wrong
        <select
          name="type"
          class="select select-sm w-full"
          value={type}
          onChange={(event) => void (chosen.value = event.currentTarget.value as FaultType)}
        >
          {types.map((one) => (
            <option key={one} value={one}>
              {wordsOf(one)}
            </option>
          ))}
        </select>
      </label>
      <p class="quiet text-sm" data-sentence>
        {kind.description}
      </p>
      <div class="grid grid-cols-2 gap-2">
        {target === undefined && (
          <label class="grid gap-1 text-sm col-span-2">
            Where
            <select name="target" class="select select-sm w-full">
              {!kind.needsTarget && <option value="">all targets</option>}
              {targets.map((name) => (
                <option key={name} value={name}>
                  {nameOf(name)}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="grid gap-1 text-sm">
          Seconds (none: until cleared)
          <input name="seconds" type="number" min="0.1" step="any" class="input input-sm w-full" />
        </label>
        <label class="grid gap-1 text-sm">
          Chance each time (0 to 1)
          <input
            name="probability"
            type="number"
            min="0.01"
            max="1"
            step="any"
            placeholder={String(kind.probability)}
            class="input input-sm w-full"
          />
        </label>
      </div>
      <button class="btn btn-warning btn-sm justify-self-start">Raise the fault</button>
    </form>
  )
}

const chosen = signal<FaultType | null>(null)

function namesOf(): string[] {
  const { bins, fridges, doors, controllers, rows } = state.value!
  return [
    ...bins.map(({ bin }) => bin),
    ...new Set(rows.map(({ cabinet }) => `cabinet-${cabinet}`)),
    ...fridges.map(({ fridge }) => fridge),
    ...doors.map(({ door }) => door),
    ...controllers.map(({ controller }) => controller),
  ]
}

export function FaultsView(): JSX.Element {
  const faults = state.value?.faults ?? []
  return (
    <div class="grid gap-6 md:grid-cols-2">
      <div>
        <h2 class="font-semibold mb-2">Raise a fault</h2>
        <FaultForm />
      </div>
      <div>
        <div class="flex items-center mb-2">
          <h2 class="font-semibold grow">Active faults</h2>
          {faults.length > 1 && (
            <button
              class="btn btn-sm"
              onClick={() => void attempt('Clear all faults', () => ask('DELETE', '/faults'))}
            >
              Clear all
            </button>
          )}
        </div>
        {faults.length === 0 ? <p class="quiet text-sm">None.</p> : <ActiveFaults faults={faults} />}
      </div>
    </div>
  )
}
