import type { JSX } from 'preact'
import { say } from '../../../protocol/ui/notices.tsx'

/** A secret that the service shows once, until the page is left. */
export function Secret({
  of: owner,
  what = 'Secret',
  value,
}: {
  of: string
  what?: string
  value: string | null
}): JSX.Element | null {
  if (value === null) return null
  const copy = (): void =>
    void navigator.clipboard.writeText(value).then(
      () => say('Copied.'),
      () => say('Select the text and copy it.', true),
    )
  return (
    <div
      class="alert alert-warning alert-soft text-base-content mb-3 flex flex-wrap"
      role="status"
      data-secret
    >
      <span class="min-w-0">
        {what} of the {owner}. It is shown only now: <code class="break-all select-all">{value}</code>
      </span>
      <button class="btn btn-sm" onClick={copy}>
        Copy
      </button>
    </div>
  )
}
