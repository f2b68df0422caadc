(() => {
  // The choice of a visitor comes before the system's; it is set before anything is painted.
  const chosen = () => {
    if (new URLSearchParams(location.search).has('__theme')) return null;
    try { return localStorage.getItem('assay-theme'); } catch { return null; }
  };
  const set = () => {
    const kept = chosen(), system = matchMedia('(prefers-color-scheme: dark)').matches;
    const dark = kept ? kept === 'dark' : system;
    if (document.body.classList.contains('dark') !== dark) document.body.classList.toggle('dark', dark);
  };
  set();
  new MutationObserver(() => { if (chosen()) set(); }).observe(document.body, { attributeFilter: ['class'] });
})();
