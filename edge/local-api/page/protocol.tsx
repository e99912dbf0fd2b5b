import type { JSX } from 'preact'
import type { AcceptanceProtocol } from '../../../protocol/model/acceptance.ts'
import { hardware } from './store.ts'

export const resultWords = {
  passed: 'passed',
  failed: 'failed',
  incomplete: 'passed as far as it was done',
} as const

const at = (instant: number): string => new Date(instant).toLocaleString()

/** The protocol of an acceptance, as it is printed. */
export function Protocol({ protocol }: { protocol: AcceptanceProtocol }): JSX.Element {
  const { by, begun_at, ended_at, software, firmware, result, steps, left_out: leftOut } = protocol
  return (
    <div class="grid gap-3 min-w-0" data-protocol={protocol.id}>
      <h2 class="text-lg font-semibold">
        Acceptance of hub {hardware.value?.hubId}: {result === null ? 'under way' : resultWords[result]}
      </h2>
      <dl class="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3">
        <dt class="quiet">By</dt>
        <dd>{by}</dd>
        <dt class="quiet">From</dt>
        <dd>{at(begun_at)}</dd>
        <dt class="quiet">To</dt>
        <dd>{ended_at === null ? '–' : at(ended_at)}</dd>
        <dt class="quiet">Software</dt>
        <dd>{software}</dd>
        <dt class="quiet">Firmware</dt>
        <dd class="break-words">
          {firmware.map((one) => `${one.controller} ${one.firmware ?? 'unknown'}`).join(', ')}
        </dd>
      </dl>
      {leftOut > 0 && <p>{leftOut} rows without a product were left out.</p>}
      <ol class="protocol grid gap-2">
        {steps.map((step) => (
          <li key={step.id} class="border-t border-base-300 pt-2 text-sm break-inside-avoid">
            <h3 class="font-semibold">{step.title}</h3>
            <p>
              <span class="quiet">Expected:</span> {step.expected}
            </p>
            {step.attempts.length === 0 && <p class="quiet">Not done.</p>}
            {step.attempts.map(({ observed, verdict, remark, at: instant }, index) => (
              <p key={index}>
                <b class={verdict === 'failed' ? 'bad' : ''}>{verdict ?? 'no verdict'}</b>{' '}
                <span class="quiet">{at(instant)}</span> {observed}
                {remark !== '' && <i> Remark: {remark}</i>}
              </p>
            ))}
          </li>
        ))}
      </ol>
      <p class="hidden print:block mt-8">Signature: ________________________________</p>
    </div>
  )
}
