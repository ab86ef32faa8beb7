// The options at the side fade out at the bottom where there are more of them below.

import { find } from './format.js';

const END_PX = 8;

const side = find('#side');
const look = () => side.classList.toggle('more', side.scrollHeight - side.clientHeight - side.scrollTop > END_PX);

side.addEventListener('scroll', look, { passive: true });
new ResizeObserver(look).observe(side);
new MutationObserver(look).observe(side, { childList: true, subtree: true });
new MutationObserver(look).observe(document.body, { attributes: true, attributeFilter: ['data-view', 'data-phase'] });
look();
