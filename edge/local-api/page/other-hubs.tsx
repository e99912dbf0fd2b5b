import { Undo2 } from 'lucide'
import type { JSX } from 'preact'
import { Icon } from '../../../protocol/ui/icon.tsx'
import { discardEntryOfOther, ofOthers, rowKey } from './counts.ts'

/** Unsent entries at other hubs. This hub must not get them. */
export function OtherHubs(): JSX.Element | null {
  if (ofOthers.value.length === 0) return null
  return (
    <div data-other-hubs>
      <h3 class="font-medium">Not sent to other hubs</h3>
      <p class="quiet text-sm">Open the page of the other hub to send its counts.</p>
      <ul>
        {ofOthers.value.map(({ id, hub, what, location, units, at, by }) => (
          <li key={id} class="py-1 border-b border-base-300 text-sm flex items-center gap-2">
            <span class="grow min-w-0 break-words">
              <b>{hub === undefined ? 'Unknown hub' : `Hub ${hub}`}</b>, row {rowKey(location)}:{' '}
              {what === 'count' ? 'counted' : 'added'} {units} on {new Date(at).toLocaleString()}
              {by && ` by ${by}`}
            </span>
            <button
              type="button"
              class="btn btn-sm"
              aria-label={`Discard the entry of ${hub === undefined ? 'an unknown hub' : `hub ${hub}`}, row ${rowKey(location)}`}
              onClick={() => discardEntryOfOther(id)}
            >
              <Icon icon={Undo2} /> Discard
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
