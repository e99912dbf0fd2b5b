import type { IconNode } from 'lucide'
import { h, type JSX } from 'preact'

/**
 * An icon of the package `lucide`, as tall as the text around it. Screen readers skip it: text beside it or a label has
 * the meaning.
 */
export function Icon({ icon, class: more = '' }: { icon: IconNode; class?: string }): JSX.Element {
  return (
    <svg
      class={`inline-block size-[1.1em] shrink-0 align-[-0.15em] ${more}`}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {icon.map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  )
}
