import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { nameOf } from '../../../protocol/ui/picture-model.ts'
import type { Act } from '../../physics/world-state.ts'
import { acts, selected } from './store.ts'

const isOnlySelected = signal(false)
const SHOWN = 100

const timeOf = (at: string): string => at.slice(11, 23)
export const wordsOf = (detail: object): string =>
  Object.entries(detail)
    .map(([key, value]) => `${key.replaceAll('_', ' ')} ${String(value)}`)
    .join(', ')

export function ActLine({ act, withDevice }: { act: Act; withDevice: boolean }): JSX.Element {
  return (
    <li class="py-1.5 border-b border-base-300 text-sm">
      <div class="flex flex-wrap gap-x-3">
        <span class="quiet tabular-nums">{timeOf(act.at)}</span>
        <span class="font-medium">
          {withDevice ? `${nameOf(act.device)}: ` : ''}
          {act.action.replaceAll('_', ' ')}
        </span>
        <span class="quiet">{wordsOf(act.detail)}</span>
      </div>
      {act.operation_id && <div class="quiet font-mono text-xs break-all">operation {act.operation_id}</div>}
    </li>
  )
}

/** The physical events: what really moved or fell, whatever the hub reports. */
export function ActsView(): JSX.Element {
  const device = selected.value
  const shown = acts.value
    .filter((act) => !isOnlySelected.value || device === null || act.device === device)
    .slice(-SHOWN)
    .toReversed()
  return (
    <>
      <div class="flex flex-wrap items-center gap-3 mb-2">
        <p class="quiet text-sm grow">
          Motions, falls and hands, as they really happened. The newest is first.
        </p>
        <label class="label text-sm text-base-content">
          <input
            type="checkbox"
            class="checkbox checkbox-sm"
            checked={isOnlySelected.value}
            onChange={(event) => void (isOnlySelected.value = event.currentTarget.checked)}
          />
          only the device that is selected
        </label>
      </div>
      {shown.length === 0 && <p class="quiet">Nothing has happened yet.</p>}
      <ol data-acts>
        {shown.map((act) => (
          <ActLine key={act.n} act={act} withDevice />
        ))}
      </ol>
    </>
  )
}
