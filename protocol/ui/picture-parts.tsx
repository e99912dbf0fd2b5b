import type { JSX } from 'preact'
import type { Box } from './picture-layout.ts'

export const Frame = ({ box, trouble }: { box: Box; trouble: string | null }): JSX.Element => (
  <rect
    {...box}
    rx="6"
    stroke-width={trouble ? 2.5 : 1.2}
    class={`fill-base-100 ${trouble ? 'stroke-error' : 'stroke-base-content/30'}`}
  />
)

/** A visual mark for a problem; the label has the text. */
export const Mark = ({ x, y }: { x: number; y: number }): JSX.Element => (
  <g>
    <circle cx={x} cy={y} r="8" class="fill-error" />
    <text x={x} y={y + 4.5} text-anchor="middle" font-size="13" font-weight="700" class="fill-error-content">
      !
    </text>
  </g>
)
